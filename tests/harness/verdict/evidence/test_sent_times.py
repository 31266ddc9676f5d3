"""When the load sent nothing, by its events."""

from __future__ import annotations

from streamquake.harness.verdict.evidence.sent_times import (
    load_ended_ns,
    sent_ranges_of,
    silences_of,
)
from streamquake.harness.workloads.sending.ranges import PendingRanges, SendStatus, sent_values
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


def waiting_load(stuck_ms: int, expires_ms: int) -> tuple[Story, dict[int, int]]:
    """Ten records a second; every fourth from `stuck_ms` on is never acknowledged and expires
    later, the others are acknowledged 5 ms after their send. The story of the load's events, and
    when each record was sent, in ms."""
    pending, recorded = PendingRanges(), Story()
    sent_ms: dict[int, int] = {}
    for now_ms in range(0, 20_000 + expires_ms, 10):
        if now_ms % 100 == 0 and now_ms < 20_000:
            sent_ms[len(sent_ms)] = now_ms
            pending.add(1)
        for index, at_ms in sent_ms.items():
            is_stuck = index % 4 == 3 and at_ms >= stuck_ms
            if now_ms == at_ms + (expires_ms if is_stuck else 10):
                status = SendStatus.UNKNOWN if is_stuck else SendStatus.ACKNOWLEDGED
                pending.settle(index, status, now_ms * 1_000_000)
        if now_ms % 300 == 0:
            for _, value in sent_values(pending.take()):
                recorded.at(now_ms / 1000, Action.SENT, **value)
    return recorded, sent_ms


def test_records_behind_an_unsettled_one_keep_the_time_of_their_send() -> None:
    """They are listed when it expires, ten seconds later."""
    recorded, sent_ms = waiting_load(stuck_ms=5_000, expires_ms=10_000)
    history = recorded.history()
    late_s = max(
        event.at_s - sent_ms[event.value["first"]] / 1000
        for event in history.of(Action.SENT)
        if event.value["status"] == "acknowledged"
    )
    assert late_s > 9

    ranges = sent_ranges_of(history)

    assert [each.first for each in ranges] == sorted(each.first for each in ranges)
    for each in ranges:
        for index in (each.first, each.last):
            assert each.since_ns / 1e6 - 1000 <= sent_ms[index] <= each.at_ns / 1e6
        assert each.at_ns / 1e6 - sent_ms[each.last] < 500


def test_a_late_acknowledgement_delays_no_other_record() -> None:
    """The broker of one partition answers after five seconds; all records were sent before."""
    pending = PendingRanges()
    pending.add(8)
    for index in (1, 2, 4, 5, 6):
        pending.settle(index, SendStatus.ACKNOWLEDGED, (1000 + index) * 1_000_000)
    for index in (0, 3, 7):
        pending.settle(index, SendStatus.ACKNOWLEDGED, 6_000 * 1_000_000)

    (taken,) = pending.take()

    assert [part[:2] for part in taken.sent_by] == [(0, 6), (7, 7)]
    assert [part.at_ns for part in taken.sent_by] == [1_006_000_000, 6_000_000_000]


def test_an_event_cannot_say_that_records_were_sent_after_it() -> None:
    times = {"acknowledged_until_ns": 2**60, "sent_by": [[0, 9, 2**60]], "pauses_ns": []}
    sent = {"first": 0, "last": 9, "count": 10, "status": "acknowledged"}
    history = Story().at(5, Action.SENT, **sent, **times).history()
    assert load_ended_ns(history) == 5e9
    assert [each.at_ns for each in sent_ranges_of(history)] == [5e9]
