"""Disturbs the cluster: faults, their targets, triggers and schedules."""
