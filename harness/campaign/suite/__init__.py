"""Suites: many experiments in a row, on one cluster where possible, with one table of results."""
