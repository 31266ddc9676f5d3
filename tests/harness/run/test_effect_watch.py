"""When a fault in effect is looked at again: moment by moment, with looks that end when told."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import pytest

from streamquake.faults.fault import Evidence
from streamquake.faults.injection.verification import RepeatedVerification
from streamquake.harness.run.effect_watch import EffectWatch

S = 10**9


class Looks(Executor):
    """Looks that are under way until the test ends them."""

    def __init__(self) -> None:
        self.begun: list[Future[Any]] = []
        self.woken = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert fn() == "the look"
        self.begun.append(Future())
        return self.begun[-1]

    def wake(self) -> None:
        self.woken += 1

    def end(self, at_s: float, *, in_effect: bool, gone: bool = False) -> RepeatedVerification:
        seen = Evidence(in_effect=in_effect, gone=gone)
        found = RepeatedVerification(seen_ns=int(at_s * S), evidence={"a": seen}, targets=1)
        self.begun[-1].set_result(found)
        return found


def watched(looks: Looks, heal_s: float | None) -> EffectWatch:
    def poll() -> Any:
        return "the look"

    due = None if heal_s is None else int(heal_s * S)
    return EffectWatch(poll, looks, looks.wake, seen_ns=10 * S, heal_due_ns=due)


def begun_at(heal_s: float | None, until_s: float) -> list[float]:
    """The moments, to a tenth, at which looks begin that end at once."""
    looks, moments = Looks(), []
    watch = watched(looks, heal_s)
    for tenth in range(100, int(until_s * 10)):
        before = len(looks.begun)
        watch.advance(tenth * S // 10)
        if len(looks.begun) > before:
            moments.append(tenth / 10)
            looks.end(tenth / 10, in_effect=True)
            assert watch.finished() is not None
    return moments


@pytest.mark.parametrize(
    ("heal_s", "moments"),
    [
        (None, [15, 20, 25, 30]),
        (30.0, [15, 20, 25, 27]),
        (25.0, [15, 20, 22]),
        (14.0, [12]),
        (11.0, [10.5]),
    ],
)
def test_looks_begin_every_five_seconds_and_shortly_before_the_heal(
    heal_s: float | None, moments: list[float]
) -> None:
    assert begun_at(heal_s, 34) == moments


def test_one_look_at_a_time_and_what_it_found_is_taken_once() -> None:
    looks = Looks()
    watch = watched(looks, None)
    assert watch.advance(14_999_999_999) is None
    assert (watch.looking, watch.finished()) == (None, None)
    assert watch.advance(15 * S) is None
    assert watch.looking is looks.begun[0]
    assert watch.advance(40 * S) is None
    assert len(looks.begun) == 1
    assert (watch.last_seen_ns, looks.woken) == (10 * S, 0)
    found = looks.end(41, in_effect=True)
    assert looks.woken == 1
    assert watch.advance(42 * S) is found
    assert (watch.last_seen_ns, watch.ended) == (41 * S, False)
    assert watch.finished() is None
    watch.advance(42 * S)
    assert len(looks.begun) == 2, "the next one was due long ago"


def test_a_look_without_proof_moves_no_moment_and_an_end_ends_the_looks() -> None:
    looks = Looks()
    watch = watched(looks, None)
    watch.advance(15 * S)
    looks.end(16, in_effect=False)
    watch.advance(17 * S)
    assert (watch.last_seen_ns, watch.ended) == (10 * S, False)
    watch.advance(20 * S)
    found = looks.end(21, in_effect=False, gone=True)
    assert watch.advance(22 * S) is found
    assert watch.ended
    watch.advance(60 * S)
    assert len(looks.begun) == 2
    assert watch.is_through(60 * S)


def test_a_fault_without_an_end_is_looked_at_once_more() -> None:
    looks = Looks()
    watch = watched(looks, None)
    assert not watch.is_through(12 * S), "the first call asks for the look"
    watch.advance(12 * S)
    assert len(looks.begun) == 1
    assert not watch.is_through(13 * S), "under way"
    looks.end(14, in_effect=True)
    watch.finished()
    assert watch.is_through(14 * S)
    watch.advance(60 * S)
    assert len(looks.begun) == 1


def test_a_last_look_that_never_ends_is_waited_for_ten_seconds() -> None:
    looks = Looks()
    watch = watched(looks, None)
    assert not watch.is_through(12 * S)
    watch.advance(12 * S)
    assert not watch.is_through(22 * S - 1)
    assert watch.is_through(22 * S)
