"""How records stand in files: one file for each format."""
