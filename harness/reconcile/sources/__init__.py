"""Sources of records: one file for each scheme of a URI."""
