"""What all workloads share: an even rate, and an exact result of each send."""
