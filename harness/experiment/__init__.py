"""The language of experiments: the model, its loader, the rules for documents."""
