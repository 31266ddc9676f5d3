"""When the load sent nothing, by its events."""

from __future__ import annotations

from streamquake.harness.verdict.evidence.sent_times import (
    SentRange,
    load_ended_ns,
    sent_ranges_of,
    silences_of,
)
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


def sends(*moments_s: float) -> list[SentRange]:
    recorded = Story()
    for at_s in moments_s:
        recorded.sent(at_s, 10)
    return sent_ranges_of(recorded.history())


def silences(*moments_s: float, usual_until_s: float = 2.0) -> list[tuple[float, float]]:
    found = silences_of(sends(*moments_s), round(usual_until_s * 1e9))
    return [(silence.since_ns / 1e9, silence.at_ns / 1e9) for silence in found]


def test_the_load_is_silent_for_a_second_and_longer_than_usual() -> None:
    assert silences(0.5, 1, 1.25, 2, 4, 4.5) == [(2, 4)]
    assert silences(0.25, 0.5, 1.4, 2.3) == [], "less than a second"
    assert silences(0.25, 0.5, 1.5) == [], "before the fault it is usual"
    assert silences(1, 2, 4) == [], "twice as long as usual"
    assert silences(1, 2, 4.01) == [(2, 4.01)]
    assert silences() == []


def test_the_load_ends_with_its_last_acknowledged_record() -> None:
    recorded = Story().at(60, Action.WORKLOAD_DONE)
    assert load_ended_ns(recorded.history()) == 60e9, "a load without numbered records"
    recorded.sent(50, 5, "unknown").sent(55, 5, "failed")
    assert load_ended_ns(recorded.history()) == 60e9
    recorded.sent(30, 5).sent(20, 5)
    assert load_ended_ns(recorded.history()) == 30e9
    assert load_ended_ns(Story().sent(50, 5, "unknown").history()) is None
