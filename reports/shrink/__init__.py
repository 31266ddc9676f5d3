"""The results of a shrink, and its page."""
