"""Interactive mode: a cluster that stays up, and manually injected faults."""
