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


def mechanisms_of(name: str) -> set[tuple[str, str]]:
    """The modules whose code a fault uses, each with the kind of target."""
    fault = faults[name]
    tree = ast.parse(inspect.getsource(sys.modules[fault.__module__]))
    return {
        (str(fault.target_kind), node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(FOLDER)
    }


def one_of_each_mechanism(names: Iterable[str]) -> set[str]:
    """Faults that together use each mechanism: in the order of the names, each fault that has one
    which none before it has."""
    chosen, covered = set[str](), set[tuple[str, str]]()
    for name in sorted(names):
        if not (mechanisms := mechanisms_of(name)) <= covered:
            chosen.add(name)
            covered |= mechanisms
    return chosen
