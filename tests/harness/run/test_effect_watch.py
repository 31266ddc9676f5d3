"""When a fault in effect is verified again, with checks that the test completes."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import pytest

from streamquake.faults.fault import Evidence
from streamquake.faults.injection.verification import RepeatedVerification
from streamquake.harness.run.effect_watch import EffectWatch
from streamquake.reports.record.fault_events import UNVERIFIED_NS

S = 10**9


class ManualChecks(Executor):
    """An executor whose checks run until the test completes them."""

    def __init__(self) -> None:
        self.started: list[Future[Any]] = []
        self.woken = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert fn() == "the check"
        self.started.append(Future())
        return self.started[-1]

    def wake(self) -> None:
        self.woken += 1

    def complete(self, at_s: float, *, in_effect: bool, gone: bool = False) -> RepeatedVerification:
        evidence = Evidence(in_effect=in_effect, healed=gone)
        found = RepeatedVerification(seen_ns=int(at_s * S), evidence={"a": evidence}, targets=1)
        self.started[-1].set_result(found)
        return found


def watch_of(checks: ManualChecks, heal_s: float | None) -> EffectWatch:
    def verify() -> Any:
        return "the check"

    due = None if heal_s is None else int(heal_s * S)
    return EffectWatch(verify, checks, checks.wake, effect_ns=10 * S, heal_due_ns=due)


def check_moments(heal_s: float | None, until_s: float) -> list[float]:
    """The moments, to a tenth of a second, at which checks start if each completes at once."""
    checks, moments = ManualChecks(), []
    watch = watch_of(checks, heal_s)
    for tenth in range(100, int(until_s * 10)):
        before = len(checks.started)
        watch.advance(tenth * S // 10)
        if len(checks.started) > before:
            moments.append(tenth / 10)
            checks.complete(tenth / 10, in_effect=True)
            assert watch.take_result() is not None
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
def test_checks_start_every_five_seconds_and_shortly_before_the_heal(
    heal_s: float | None, moments: list[float]
) -> None:
    assert check_moments(heal_s, 34) == moments


def test_one_check_runs_at_a_time_and_its_result_is_taken_once() -> None:
    checks = ManualChecks()
    watch = watch_of(checks, None)
    assert watch.advance(14_999_999_999) is None
    assert (watch.check_under_way, watch.take_result()) == (None, None)
    assert watch.advance(15 * S) is None
    assert watch.check_under_way is checks.started[0]
    assert watch.advance(40 * S) is None
    assert len(checks.started) == 1
    assert (watch.last_verified_ns, checks.woken) == (10 * S, 0)
    found = checks.complete(41, in_effect=True)
    assert checks.woken == 1
    assert watch.advance(42 * S) is found
    assert (watch.last_verified_ns, watch.has_ended) == (41 * S, False)
    assert watch.take_result() is None
    watch.advance(42 * S)
    assert len(checks.started) == 2, "the next check is overdue"


def test_a_failed_check_changes_no_moment_and_an_early_end_stops_the_checks() -> None:
    checks = ManualChecks()
    watch = watch_of(checks, None)
    watch.advance(15 * S)
    checks.complete(16, in_effect=False)
    watch.advance(17 * S)
    assert (watch.last_verified_ns, watch.has_ended) == (10 * S, False)
    watch.advance(20 * S)
    found = checks.complete(21, in_effect=False, gone=True)
    assert watch.advance(22 * S) is found
    assert watch.has_ended
    watch.advance(60 * S)
    assert len(checks.started) == 2
    assert watch.final_check_is_done(60 * S)


def test_a_fault_without_duration_is_checked_once_more() -> None:
    checks = ManualChecks()
    watch = watch_of(checks, None)
    assert not watch.final_check_is_done(12 * S), "the first call requests the check"
    watch.advance(12 * S)
    assert len(checks.started) == 1
    assert not watch.final_check_is_done(13 * S), "the check is still running"
    checks.complete(14, in_effect=True)
    watch.take_result()
    assert watch.final_check_is_done(14 * S)
    watch.advance(60 * S)
    assert len(checks.started) == 1


def test_a_final_check_that_hangs_is_awaited_for_ten_seconds() -> None:
    checks = ManualChecks()
    watch = watch_of(checks, None)
    assert not watch.final_check_is_done(12 * S)
    watch.advance(12 * S)
    assert not watch.final_check_is_done(22 * S - 1)
    assert watch.final_check_is_done(22 * S)


def test_an_effect_counts_as_unverified_only_beyond_the_limit() -> None:
    watch = watch_of(ManualChecks(), 100)
    assert watch.unverified_ns(10 * S + UNVERIFIED_NS) == 0
    assert watch.unverified_ns(10 * S + UNVERIFIED_NS + 1) == UNVERIFIED_NS + 1
