"""The data shapes, one file each; each registers itself."""
