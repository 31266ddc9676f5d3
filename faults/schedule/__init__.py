"""Schedules: which fault is injected into which target, and when."""
