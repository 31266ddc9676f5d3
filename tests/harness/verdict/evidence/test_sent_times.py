"""When the load sent nothing, by its events."""

from __future__ import annotations

from streamquake.harness.verdict.evidence.sent_times import load_ended_ns, silences_of
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from tests.harness.histories import Story


def silences(*moments_s: float, usual_until_s: float = 2.0) -> list[tuple[float, float]]:
    recorded = Story()
    for at_s in moments_s:
        recorded.sent(at_s, 10)
    return silences_in(recorded.history(), usual_until_s)


def silences_in(history: History, usual_until_s: float = 2.0) -> list[tuple[float, float]]:
    found = silences_of(history, round(usual_until_s * 1e9))
    return [(silence.since_ns / 1e9, silence.until_ns / 1e9) for silence in found]


def acknowledged(
    recorded: Story, at_s: float, until_s: float, *pauses_s: tuple[float, float]
) -> Story:
    """Acknowledged records whose event says when the acknowledgements arrived."""
    first = 10 * round(at_s)
    return recorded.at(
        at_s,
        Action.SENT,
        first=first,
        last=first + 9,
        count=10,
        status="acknowledged",
        acknowledged_until_ns=round(until_s * 1e9),
        pauses_ns=[[round(a * 1e9), round(b * 1e9)] for a, b in pauses_s],
    )


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


def test_records_behind_an_unsettled_one_are_no_silence() -> None:
    """For 27 s the records of one partition waited for their broker; the others went on."""
    recorded = acknowledged(Story(), 1, 1)
    acknowledged(recorded, 3, 3)
    acknowledged(recorded, 30, 30)
    assert silences_in(recorded.history()) == []


def test_the_load_is_silent_where_no_record_was_acknowledged() -> None:
    recorded = acknowledged(Story(), 1, 1, (0.2, 0.8))
    acknowledged(recorded, 30, 29, (5, 6.1), (7, 8.2), (20, 26))
    assert silences_in(recorded.history()) == [(20, 26)], "twice as long as usual is 1.2 s"

    acknowledged(recorded, 32, 32, (30, 31.3))
    assert silences_in(recorded.history()) == [(20, 26), (30, 31.3)]


def test_the_load_ends_with_its_last_acknowledgement_though_it_was_noted_later() -> None:
    recorded = acknowledged(Story(), 10, 10)
    acknowledged(recorded, 130, 14).at(130, Action.WORKLOAD_DONE)
    assert load_ended_ns(recorded.history()) == 14e9
