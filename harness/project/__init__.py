"""A first project: the files that `streamquake init` writes."""
