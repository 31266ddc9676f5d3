"""Formats of records: one file for each format."""
