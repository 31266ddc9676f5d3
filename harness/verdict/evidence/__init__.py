"""What a run left behind, read: each reader makes one thing of the history, for the checks."""
