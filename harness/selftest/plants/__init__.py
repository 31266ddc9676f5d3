"""The anomalies that are planted, one file each; each registers itself."""
