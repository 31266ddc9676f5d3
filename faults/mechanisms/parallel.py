"""The same on several targets or places, at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def at_once(act: Callable[[T], R], places: Collection[T]) -> list[R]:
    """What an act came to on each, in their order. Raises what the first that failed raised, after
    all have ended."""
    if len(places) <= 1:
        return [act(place) for place in places]
    with ThreadPoolExecutor(max_workers=len(places)) as pool:
        # Not `map`, which leaves out those that were not begun when one fails.
        began = [pool.submit(act, place) for place in places]
    return [each.result() for each in began]
