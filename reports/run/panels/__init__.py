"""The panels of the timeline, one file for each kind of chart."""
