"""Values in one canonical form for all types."""
