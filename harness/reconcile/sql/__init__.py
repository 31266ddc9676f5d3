"""The SQL of documents and options: what is allowed, what is rejected."""
