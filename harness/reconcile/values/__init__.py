"""Values: one canonical form for all types, so that equal means the same."""
