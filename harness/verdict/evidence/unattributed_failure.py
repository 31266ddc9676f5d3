"""A failure that is not attributed to a fault.

Every part of the judge decides this by the same rule: `SETTLED_S` before the failure all faults
were over, the system was back, and nothing failed since. Each part defines "back" by what it
judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

SETTLED_S = 30.0
"""How long all faults must have been over, and the system back, before a failure is not attributed
to a fault: effects may appear late, for example after a time-out."""


def first_unattributed(
    failures_ns: Iterable[int], was_back: Callable[[int, int], bool]
) -> int | None:
    """The first of the failures that is not attributed to a fault; None without one.

    `failures_ns` are moments on the run's clock, in order. `was_back(at_ns, failure_ns)` tells
    whether all faults were over and the system was back at a moment, and did not have to return
    again before the failure.
    """
    settled_ns = round(SETTLED_S * 1e9)
    for earlier_ns, failure_ns in pairwise((0, *failures_ns)):
        quiet = failure_ns - earlier_ns >= settled_ns
        if quiet and was_back(failure_ns - settled_ns, failure_ns):
            return failure_ns
    return None
