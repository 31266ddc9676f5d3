"""Many runs: suites, and comparisons of topologies."""
