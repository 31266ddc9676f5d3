"""One file for each fault."""
