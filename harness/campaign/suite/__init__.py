"""Suites: many experiments in a row, on one cluster where possible, told in one table."""
