"""What `make mutants` makes of the results of mutmut: a table, and a failure below the share."""
