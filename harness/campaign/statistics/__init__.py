"""Statistics over the runs of one experiment, with the methods of SciPy."""
