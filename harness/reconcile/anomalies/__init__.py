"""Classes of anomaly that are judged where they are asked for: one file each."""
