"""The mechanisms of each fault: what it imports from `faults/mechanisms/`, for its kind of target.

Faults with the same mechanisms differ only in values that the tests without containers cover.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable

from streamquake.faults.fault import faults

FOLDER = "streamquake.faults.mechanisms"
ON_SMALL_CLUSTERS = {
    "clock_skew": "test_faults_resources.py",
    "crash_loop": "test_faults_process.py",
    "disk_full": "test_faults_resources.py",
    "dns_failure": "test_faults_network.py",
    "partition": "test_faults_network.py",
    "partition_link": "test_faults_network.py",
}
"""Faults that `make test` injects and heals on clusters of few nodes, and the file that does."""


def mechanisms_of(name: str) -> set[tuple[str, str]]:
    """The modules whose code a fault uses, each with the kind of target."""
    fault = faults[name]
    tree = ast.parse(inspect.getsource(sys.modules[fault.__module__]))
    return {
        (str(fault.target_kind), node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(FOLDER)
    }


def others_of_each_mechanism(names: Iterable[str]) -> set[str]:
    """Faults that use each mechanism which none in `ON_SMALL_CLUSTERS` has: in the order of the
    names, each fault that has one which none before it has."""
    chosen = set[str]()
    covered = set[tuple[str, str]]().union(*map(mechanisms_of, ON_SMALL_CLUSTERS))
    for name in sorted(names):
        if not (mechanisms := mechanisms_of(name)) <= covered:
            chosen.add(name)
            covered |= mechanisms
    return chosen
