"""Loads of which the records are stored with the run, since no formula gives them in Spark."""
