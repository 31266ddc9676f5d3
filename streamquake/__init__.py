"""Streamquake: chaos and failover tests for stream processors, judged from evidence.

Imports run in one direction: topologies -> reports -> cluster -> faults -> harness; each folder
imports only from folders to its left.
"""

__version__ = "0.2.0"
