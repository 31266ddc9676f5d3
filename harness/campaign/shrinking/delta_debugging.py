"""Delta debugging: the algorithm `ddmin` over a sequence.

A. Zeller, R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input. IEEE Transactions on
Software Engineering 28(2), 2002. Two differences, since every candidate costs runs of a cluster:
only complements are tried, which find a minimum too (R. Hodován, Á. Kiss: Modernizing Hierarchical
Delta Debugging. A-TEST 2016); and the empty sequence, which the paper assumes not to fail, is the
first candidate.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A part of the items, in their order, that fails and of which no single item can be left out.
    `items` is known to fail. `fails` may be asked for the same part twice."""
    kept = tuple(items)
    if not kept or fails(()):
        return ()
    parts = 2
    while len(kept) > 1:
        smaller = next(filter(fails, _complements(kept, parts)), None)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(2 * parts, len(kept))
        else:
            break
    return kept


def _complements(items: tuple[T, ...], parts: int) -> Iterator[tuple[T, ...]]:
    """The items without each of so many parts of about equal size."""
    bounds = [len(items) * number // parts for number in range(parts + 1)]
    for begin, end in itertools.pairwise(bounds):
        yield items[:begin] + items[end:]
