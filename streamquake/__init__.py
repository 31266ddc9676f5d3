"""Streamquake: chaos and failover tests for stream processors, judged from evidence.

Imports run in one direction: topologies -> reports -> cluster -> faults -> harness; each folder
imports only from folders to its left.
"""

from importlib.metadata import version

__version__ = version("streamquake")
"""The version in `pyproject.toml`, as it was installed."""
