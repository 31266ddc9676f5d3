"""Many runs: suites, comparisons, explorations, and the search for the smallest experiment."""
