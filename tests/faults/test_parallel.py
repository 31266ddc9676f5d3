"""Actions on several targets at the same time."""

from __future__ import annotations

from threading import Barrier

import pytest

from streamquake.faults.mechanisms.parallel import run_in_parallel

MANY = 40
"""More than a pool has threads by itself, on any machine."""


@pytest.mark.parametrize("count", [0, 1, 2, MANY])
def test_all_items_are_processed_in_parallel_and_returned_in_order(count: int) -> None:
    barrier = Barrier(max(1, count))

    def act(place: int) -> str:
        barrier.wait(timeout=60)
        return f"at {place}"

    assert run_in_parallel(act, range(count)) == [f"at {place}" for place in range(count)]


def test_the_first_failure_is_raised_after_all_actions_have_ended() -> None:
    ended = []

    def act(place: int) -> None:
        if place in (1, 2):
            raise RuntimeError(f"no {place}")
        ended.append(place)

    with pytest.raises(RuntimeError, match="no 1"):
        run_in_parallel(act, range(4))
    assert sorted(ended) == [0, 3]
