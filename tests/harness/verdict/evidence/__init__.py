"""Tests of the readers of a run's history."""
