"""Coverage: which phases of the protocol the faults of recorded runs met, proven by the records."""
