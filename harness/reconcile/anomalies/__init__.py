"""Classes of anomaly that are judged on request: one file each."""
