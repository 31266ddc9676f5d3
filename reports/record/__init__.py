"""The record of a run: events, metrics, results, fault windows, and their folder."""
