"""Tests of the coverage of recorded runs."""
