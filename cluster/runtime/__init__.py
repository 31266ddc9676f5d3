"""The container runtime: its interface, Docker behind it, a fake for tests."""
