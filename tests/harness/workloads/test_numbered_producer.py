"""The sender, against the client's own mock broker: no container, no ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.harness.experiment.workload import WorkloadFinished
from streamquake.harness.workloads.numbered import Numbered, producer
from streamquake.harness.workloads.numbered.producer import NumberedSender, producer_settings
from streamquake.harness.workloads.numbered.ranges import (
    PendingRanges,
    SendRange,
    SendStatus,
    note_problems,
    notes_of,
    sent_ranges,
)
from streamquake.harness.workloads.numbered.workload_changes import (
    ScheduledChange,
    scheduled_changes_of,
)
from streamquake.reports.record.event import Action, Event, EventDraft
from streamquake.reports.record.history import History
from tests.harness.histories import Story

LIMIT_S = 30


class Sending:
    """A sender on a broker that the client itself plays, and what it handed over."""

    def __init__(self, workload: Numbered, **settings: str | int) -> None:
        self.notes: list[EventDraft] = []
        self.samples: list[tuple[str, str, float]] = []
        config = producer_settings("", workload.delivery_timeout_s) | settings
        self.running = NumberedSender(
            producer=Producer(config),
            topic=workload.topic,
            recipe_of=partial(workload.recipe, 1),
            rate_per_s=workload.rate_per_s,
            clock=SystemClock(),
            record_event=self.notes.append,
            measure=lambda *sample: self.samples.append(sample),
        ).begin()

    def history(self) -> History:
        fields = ("at_ns", "process", "kind", "action", "value", "error")
        return History(
            Event(index=index, **{name: getattr(note, name) for name in fields})
            for index, note in enumerate(self.notes)
        )

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline, "not within 30 s"
            time.sleep(0.01)


MOCK: dict[str, str | int] = {"test.mock.num.brokers": 1}


def test_everything_is_acknowledged_and_noted_as_one_range() -> None:
    sending = Sending(Numbered(records=5000, rate_per_s=20_000), **MOCK)
    sending.until(lambda: sending.running.done)

    assert sending.running.sent == 5000
    assert sending.running.failure is None
    assert sent_ranges(sending.history(), 5000) == [SendRange(0, 4999, SendStatus.ACKNOWLEDGED)]
    assert sending.notes[-1].action == Action.WORKLOAD_DONE
    assert sending.notes[-1].value == {"acknowledged": 5000, "failed": 0, "unknown": 0}
    assert len(sending.notes) < 50
    assert {sample[:2] for sample in sending.samples} == {("sent_per_s", "workload")}


def test_the_rate_is_kept() -> None:
    began = time.monotonic()
    sending = Sending(Numbered(records=2000, rate_per_s=1000), **MOCK)
    sending.until(lambda: sending.running.done)

    assert 1.9 <= time.monotonic() - began < 10


def test_a_stop_ends_it_and_notes_what_was_sent() -> None:
    sending = Sending(Numbered(records=1_000_000, rate_per_s=2000), **MOCK)
    sending.until(lambda: sending.running.sent > 100)

    sending.running.stop()
    sending.running.stop()

    assert sending.running.done
    (known,) = sent_ranges(sending.history(), 1_000_000)
    assert known == SendRange(0, sending.running.sent - 1, SendStatus.ACKNOWLEDGED)
    assert known.size < 1_000_000


def test_sends_that_time_out_are_unknown_never_failed() -> None:
    workload = Numbered(records=50, rate_per_s=1000, delivery_timeout_s=1)
    unreachable: dict[str, str | int] = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    sending = Sending(workload, **unreachable)
    sending.until(lambda: sending.running.done)

    assert sending.notes[-1].value == {"acknowledged": 0, "failed": 0, "unknown": 50}
    assert sent_ranges(sending.history(), 50) == [SendRange(0, 49, SendStatus.UNKNOWN)]


def test_a_record_too_large_is_refused_for_certain() -> None:
    """librdkafka refuses it in the call itself, before it is under way: the sender says so."""
    workload = Numbered(records=5, rate_per_s=1000, payload_bytes=5000)
    sending = Sending(workload, **MOCK, **{"message.max.bytes": 2000})
    sending.until(lambda: sending.running.done)

    assert sending.notes[-1].value == {"acknowledged": 0, "failed": 5, "unknown": 0}


def test_a_turn_is_noted_before_the_first_record_it_concerns() -> None:
    sending = Sending(Numbered(records=2_000_000, rate_per_s=20_000, keys=16), **MOCK)
    sending.until(lambda: sending.running.sent > 500)

    first = sending.running.steer("skew", {"hot_share": 0.8})
    sending.until(lambda: sending.running.sent_under("skew")["records"] > 2000)
    under = sending.running.sent_under("skew")
    end = sending.running.settle("skew")
    sending.until(lambda: sending.running.sent_under("skew")["records"] > 0)
    after = sending.running.sent_under("skew")
    sending.running.stop()

    history = sending.history()
    assert scheduled_changes_of(history) == (
        ScheduledChange(first, "skew", {"hot_share": 0.8}),
        ScheduledChange(end, "skew", None),
    )
    (started, _) = history.of(Action.WORKLOAD_STEERED)
    reached = [e.index for e in history.of(Action.SENT) if e.value["last"] >= first]
    assert started.index < min(reached)
    assert under["active"]
    assert under["hottest_share"] == pytest.approx(0.8, abs=0.05)
    assert not after["active"]
    assert after["records"] > 0


def test_what_is_acknowledged_is_what_the_turns_make(spark: SparkSession) -> None:
    """The broker's own view: the sender's histogram is that of the records made again."""
    workload = Numbered(records=6000, rate_per_s=6000, keys=16)
    sending = Sending(workload, **MOCK)
    sending.running.steer("skew", {"zipf": 1.3})
    sending.running.steer("poison", {"records": 5})
    sending.until(lambda: sending.running.done)

    made = workload.sent_frame(spark, sending.history(), seed=1)
    counted = {row.key: row["count"] for row in made.groupBy("key").count().collect()}
    recorded = sending.running.sent_under("poison")
    assert sum(counted.values()) == 6000 - 5
    assert recorded["finished"]
    assert recorded["unreadable"] == 5
    assert counted["k-00000"] / 6000 == pytest.approx(recorded["hottest_share"], abs=0.02)


def test_a_surge_sends_faster_and_settling_makes_up_for_nothing() -> None:
    """At rates that a busy machine keeps too. A rate counts what is acknowledged late as well, so
    the ordinary one is waited for."""
    sending = Sending(Numbered(records=100_000, rate_per_s=100), **MOCK)
    sending.until(lambda: sending.running.sent > 30)

    def rate(seen: Callable[[float], bool]) -> None:
        def is_seen() -> bool:
            under = sending.running.sent_under("surge")
            return under["watched_s"] > 0.8 and seen(under["records_per_s"])

        sending.until(is_seen)

    first = sending.running.steer("surge", {"factor": 8})
    rate(lambda per_s: per_s > 400)
    end = sending.running.settle("surge")
    rate(lambda per_s: 50 < per_s < 250)
    sending.running.stop()

    assert end - first > 300


def test_a_load_that_is_stuck_takes_orders_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "STOP_FLUSH_S", 0.1)
    workload = Numbered(records=200_000, rate_per_s=200_000, delivery_timeout_s=30)
    unreachable: dict[str, str | int] = {
        "bootstrap.servers": "127.0.0.1:1",
        "log_level": 0,
        "queue.buffering.max.messages": 100,
    }
    sending = Sending(workload, **unreachable)
    sending.running.steer("skew", {"hot_share": 0.5})

    assert sending.running.settle("skew") <= 101
    sending.running.stop()


def test_orders_after_the_end_find_nothing_to_steer() -> None:
    sending = Sending(Numbered(records=50, rate_per_s=10_000), **MOCK)
    sending.until(lambda: sending.running.done)

    with pytest.raises(WorkloadFinished, match="had sent all of its records"):
        sending.running.steer("skew", {"hot_share": 0.5})
    assert sending.running.settle("skew") == 50
    assert sending.running.sent_under("skew")["finished"]
    assert scheduled_changes_of(sending.history()) == ()


def test_ranges_wait_for_the_records_before_them() -> None:
    settling = PendingRanges()
    settling.sending(6)
    for index in (1, 2, 5):
        settling.settle(index, SendStatus.ACKNOWLEDGED)
    assert settling.take() == []

    settling.settle(0, SendStatus.UNKNOWN)
    assert settling.take() == [
        SendRange(0, 0, SendStatus.UNKNOWN),
        SendRange(1, 2, SendStatus.ACKNOWLEDGED),
    ]

    settling.settle_rest(SendStatus.FAILED)
    assert settling.take() == [
        SendRange(3, 4, SendStatus.FAILED),
        SendRange(5, 5, SendStatus.ACKNOWLEDGED),
    ]
    assert settling.counts == {
        SendStatus.ACKNOWLEDGED: 3,
        SendStatus.FAILED: 2,
        SendStatus.UNKNOWN: 1,
    }


@pytest.mark.parametrize("holes", [0, 3])
def test_notes_hold_every_range_of_a_status(holes: int) -> None:
    ranges = [
        SendRange(10 * change, 10 * change + 4, SendStatus.ACKNOWLEDGED)
        for change in range(holes + 1)
    ]

    ((_, value),) = notes_of(ranges)

    assert value["count"] == 5 * (holes + 1)
    assert (value["first"], value["last"]) == (0, 10 * holes + 4)
    assert ("ranges" in value) == (holes > 0)


OK, OPEN = SendStatus.ACKNOWLEDGED, SendStatus.UNKNOWN


@pytest.mark.parametrize(
    ("second", "known", "message"),
    [
        (
            {"first": 201, "last": 399, "count": 199},
            [(0, 199, OK), (200, 200, OPEN), (201, 399, OK)],
            "does not contain the records 200 to 200",
        ),
        (
            {"first": 199, "last": 399, "count": 201},
            [(0, 399, OK)],
            "contains twice the records 199 to 199",
        ),
        (
            {"first": 0, "last": 199, "count": 200},
            [(0, 199, OK), (200, 399, OPEN)],
            "contains twice the records 0 to 199",
        ),
        ({"first": 200, "last": 399, "count": 100}, [(0, 399, OK)], "counts 100 records"),
        (
            {"first": 399, "last": 200, "count": -198},
            [(0, 199, OK), (200, 399, OPEN)],
            "counts -198 records",
        ),
        ({"first": 200, "last": 399, "count": 200}, [(0, 399, OK)], ""),
    ],
)
def test_duplicate_or_missing_records_of_a_history_are_reported(
    second: dict[str, object], known: list[tuple[int, int, SendStatus]], message: str
) -> None:
    recorded = Story().sent(1, 200).at(2, Action.SENT, status="acknowledged", **second)
    recorded.at(3, Action.WORKLOAD_DONE, acknowledged=400, failed=0, unknown=0)

    assert sent_ranges(recorded.history(), 400) == [SendRange(*each) for each in known]
    problems = list(note_problems(recorded.history()))
    assert bool(problems) == bool(message)
    assert any(message in problem for problem in problems) == bool(message)


@pytest.mark.parametrize(
    ("first", "settled", "message"),
    [
        (0, 400, ""),
        (0, None, ""),
        (1, 400, "not contain the records 0 to 0"),
        (0, 500, "500 records were settled, and the history contains 400"),
    ],
)
def test_the_first_and_the_last_records_may_be_missing_too(
    first: int, settled: int | None, message: str
) -> None:
    recorded = Story().at(
        1, Action.SENT, status="acknowledged", first=first, last=399, count=400 - first
    )
    counts = {} if settled is None else {"acknowledged": settled, "failed": 0, "unknown": 0}
    recorded.at(3, Action.WORKLOAD_DONE, **counts)

    assert [each.size for each in sent_ranges(recorded.history(), 400) if each.status == OK] == [
        400 - first
    ]
    problems = list(note_problems(recorded.history()))
    assert len(problems) == bool(message)
    assert all(message in problem for problem in problems)


def test_ranges_of_two_statuses_fill_each_other() -> None:
    recorded = Story().at(
        1, Action.SENT, status="acknowledged", first=0, last=9, count=8, ranges=[[0, 3], [6, 9]]
    )
    recorded.at(1, Action.SENT, status="failed", first=4, last=5, count=2).at(
        2, Action.WORKLOAD_DONE
    )

    assert [each.size for each in sent_ranges(recorded.history(), 10)] == [4, 2, 4]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("acknowledged", []),
        (
            "failed",
            [
                "400 sends were acknowledged, and the history contains 350",
                "0 sends were failed, and the history contains 50",
            ],
        ),
        (
            "unknown",
            [
                "400 sends were acknowledged, and the history contains 350",
                "0 sends were unknown, and the history contains 50",
            ],
        ),
    ],
)
def test_the_results_of_all_sends_are_those_that_the_workload_counted(
    status: str, message: list[str]
) -> None:
    recorded = Story().at(1, Action.SENT, status="acknowledged", first=0, last=349, count=350)
    recorded.at(2, Action.SENT, status=status, first=350, last=399, count=50)
    recorded.at(3, Action.WORKLOAD_DONE, acknowledged=400, failed=0, unknown=0)
    assert list(note_problems(recorded.history())) == message
