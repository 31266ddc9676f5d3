"""Interactive mode: a cluster that stays up, and faults injected by hand."""
