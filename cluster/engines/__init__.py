"""One file for each kind of system."""
