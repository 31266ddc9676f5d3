"""The changes of a recorded run, one file each; each registers itself."""
