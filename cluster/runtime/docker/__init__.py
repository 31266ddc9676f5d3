"""The one place that speaks Docker."""
