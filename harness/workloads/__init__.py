"""The workloads, each a file or a folder. `sending` and `data_sets` have what they share."""
