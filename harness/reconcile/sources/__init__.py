"""What records can be read from: one file for each scheme of a URI."""
