"""Run the same action on several targets or places, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run_in_parallel(act: Callable[[T], R], places: Collection[T]) -> list[R]:
    """The result of an action on each item, in their order. Raises the first failure, after all
    actions have ended."""
    if len(places) <= 1:
        return [act(place) for place in places]
    with ThreadPoolExecutor(max_workers=len(places)) as pool:
        # Not `map`: when one action fails, it skips those that have not begun.
        futures = [pool.submit(act, place) for place in places]
    return [future.result() for future in futures]
