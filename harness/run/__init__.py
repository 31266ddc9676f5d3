"""One run: cluster, load, faults, recovery, drain and reading of outputs."""
