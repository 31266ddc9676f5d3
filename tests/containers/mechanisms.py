"""The mechanism of each fault: what it imports from `faults/mechanisms/`, and its kind of target.

Faults with the same mechanism differ only in values that the tests without containers cover.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable

from streamquake.faults.fault import faults

FOLDER = "streamquake.faults.mechanisms"


def mechanism_of(name: str) -> tuple[str, ...]:
    """The kind of target of a fault, and the modules whose code it uses."""
    fault = faults[name]
    tree = ast.parse(inspect.getsource(sys.modules[fault.__module__]))
    modules = [
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(FOLDER)
    ]
    return (str(fault.target_kind), *sorted(set(modules)))


def one_of_each_mechanism(names: Iterable[str]) -> set[str]:
    """For each mechanism the first fault with it, in the order of the names."""
    first: dict[tuple[str, ...], str] = {}
    for name in sorted(names):
        first.setdefault(mechanism_of(name), name)
    return set(first.values())
