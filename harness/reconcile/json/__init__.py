"""JSON records, read exactly."""
