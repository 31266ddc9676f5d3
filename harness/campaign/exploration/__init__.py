"""Exploring: trials of drawn schedules and settings, guided to what was not tried.

A trial is an experiment that is drawn from a seed. It is a run like any other, so its record can be
judged, reported and replayed.
"""
