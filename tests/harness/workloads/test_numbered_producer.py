"""The sender, on the mock broker of the Kafka client: no container."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.harness.experiment.workload import WorkloadFinished
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.sender import NumberedSender
from streamquake.harness.workloads.numbered.workload_changes import (
    ScheduledChange,
    scheduled_changes_of,
)
from streamquake.harness.workloads.sending import sender
from streamquake.harness.workloads.sending.acknowledgements import AcknowledgementTimes
from streamquake.harness.workloads.sending.ranges import (
    PendingRanges,
    SendRange,
    SendStatus,
    send_problems,
    sent_ranges,
    sent_values,
)
from streamquake.harness.workloads.sending.sender import producer_settings
from streamquake.reports.record.event import Action, Event, EventDraft
from streamquake.reports.record.history import History
from tests.harness.histories import NO_DATA, Story

pytestmark = pytest.mark.slow

LIMIT_S = 30


class SenderTestbed:
    """A running sender on the mock broker of the client, its events and its samples."""

    def __init__(self, workload: Numbered, **settings: str | int) -> None:
        self.drafts: list[EventDraft] = []
        self.samples: list[tuple[str, str, float]] = []
        config = producer_settings(KafkaConnection(""), workload.delivery_timeout_s) | settings
        self.sender = NumberedSender(
            producer=Producer(config),
            topic=workload.topic,
            definition_of=partial(workload.load_definition, 1),
            rate_per_s=workload.rate_per_s,
            clock=SystemClock(),
            record_event=self.drafts.append,
            measure=lambda *sample: self.samples.append(sample),
        ).begin()

    def history(self) -> History:
        fields = ("at_ns", "process", "kind", "action", "value", "error")
        return History(
            Event(index=index, **{name: getattr(draft, name) for name in fields})
            for index, draft in enumerate(self.drafts)
        )

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline, "not within 30 s"
            time.sleep(0.01)


MOCK: dict[str, str | int] = {"test.mock.num.brokers": 1}


def test_all_records_are_acknowledged_and_recorded_as_one_range() -> None:
    testbed = SenderTestbed(Numbered(records=5000, rate_per_s=20_000), **MOCK)
    testbed.wait_until(lambda: testbed.sender.done)

    assert testbed.sender.sent == 5000
    assert testbed.sender.failure is None
    assert sent_ranges(testbed.history(), 5000) == [SendRange(0, 4999, SendStatus.ACKNOWLEDGED)]
    assert testbed.drafts[-1].action == Action.WORKLOAD_DONE
    assert testbed.drafts[-1].value == {"acknowledged": 5000, "failed": 0, "unknown": 0}
    assert len(testbed.drafts) < 50
    assert {sample[:2] for sample in testbed.samples} == {("sent_per_s", "workload")}


def test_records_are_sent_at_the_rate() -> None:
    began = time.monotonic()
    testbed = SenderTestbed(Numbered(records=2000, rate_per_s=1000), **MOCK)
    testbed.wait_until(lambda: testbed.sender.done)

    assert 1.9 <= time.monotonic() - began < 10


def test_a_stopped_sender_records_what_it_sent() -> None:
    testbed = SenderTestbed(Numbered(records=1_000_000, rate_per_s=2000), **MOCK)
    testbed.wait_until(lambda: testbed.sender.sent > 100)

    testbed.sender.stop()
    testbed.sender.stop()

    assert testbed.sender.done
    (known,) = sent_ranges(testbed.history(), 1_000_000)
    assert known == SendRange(0, testbed.sender.sent - 1, SendStatus.ACKNOWLEDGED)
    assert known.size < 1_000_000


def test_sends_that_time_out_are_unknown_not_failed() -> None:
    workload = Numbered(records=50, rate_per_s=1000, delivery_timeout_s=1)
    unreachable: dict[str, str | int] = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    testbed = SenderTestbed(workload, **unreachable)
    testbed.wait_until(lambda: testbed.sender.done)

    assert testbed.drafts[-1].value == {"acknowledged": 0, "failed": 0, "unknown": 50}
    assert sent_ranges(testbed.history(), 50) == [SendRange(0, 49, SendStatus.UNKNOWN)]


def test_a_record_that_the_client_rejects_as_too_large_has_failed() -> None:
    """librdkafka rejects it in the call itself, before it is in flight."""
    workload = Numbered(records=5, rate_per_s=1000, payload_bytes=5000)
    testbed = SenderTestbed(workload, **MOCK, **{"message.max.bytes": 2000})
    testbed.wait_until(lambda: testbed.sender.done)

    assert testbed.drafts[-1].value == {"acknowledged": 0, "failed": 5, "unknown": 0}


def test_a_workload_change_is_recorded_before_the_first_record_that_it_affects() -> None:
    testbed = SenderTestbed(Numbered(records=2_000_000, rate_per_s=20_000, keys=16), **MOCK)
    testbed.wait_until(lambda: testbed.sender.sent > 500)

    first = testbed.sender.steer("skew", {"hot_share": 0.8})
    testbed.wait_until(lambda: testbed.sender.sent_under("skew")["records"] > 2000)
    figures = testbed.sender.sent_under("skew")
    end = testbed.sender.settle("skew")
    testbed.wait_until(lambda: testbed.sender.sent_under("skew")["records"] > 0)
    after = testbed.sender.sent_under("skew")
    testbed.sender.stop()

    history = testbed.history()
    assert scheduled_changes_of(history) == (
        ScheduledChange(first, "skew", {"hot_share": 0.8}),
        ScheduledChange(end, "skew", None),
    )
    (started, _) = history.of(Action.WORKLOAD_STEERED)
    reached = [e.index for e in history.of(Action.SENT) if e.value["last"] >= first]
    assert started.index < min(reached)
    assert figures["active"]
    assert figures["hottest_share"] == pytest.approx(0.8, abs=0.05)
    assert not after["active"]
    assert after["records"] > 0


def test_acknowledged_records_are_those_generated_from_the_recorded_changes(
    spark: SparkSession,
) -> None:
    """The sender counts the same keys as the records that Spark generates from the history."""
    workload = Numbered(records=6000, rate_per_s=6000, keys=16)
    testbed = SenderTestbed(workload, **MOCK)
    testbed.sender.steer("skew", {"zipf": 1.3})
    testbed.sender.steer("poison", {"records": 5})
    testbed.wait_until(lambda: testbed.sender.done)

    generated = workload.sent_frame(spark, testbed.history(), 1, NO_DATA)
    counts = {row.key: row["count"] for row in generated.groupBy("key").count().collect()}
    recorded = testbed.sender.sent_under("poison")
    assert sum(counts.values()) == 6000 - 5
    assert recorded["finished"]
    assert recorded["unreadable"] == 5
    assert counts["k-00000"] / 6000 == pytest.approx(recorded["hottest_share"], abs=0.02)


def test_a_surge_raises_the_rate_until_it_is_settled() -> None:
    """The rates are low enough for a busy machine. A rate includes late acknowledgements, so the
    test waits until the undisturbed rate is back."""
    testbed = SenderTestbed(Numbered(records=100_000, rate_per_s=100), **MOCK)
    testbed.wait_until(lambda: testbed.sender.sent > 30)

    def wait_for_rate(matches: Callable[[float], bool]) -> None:
        def is_reached() -> bool:
            figures = testbed.sender.sent_under("surge")
            return figures["watched_s"] > 0.8 and matches(figures["records_per_s"])

        testbed.wait_until(is_reached)

    first = testbed.sender.steer("surge", {"factor": 8})
    wait_for_rate(lambda per_s: per_s > 400)
    end = testbed.sender.settle("surge")
    wait_for_rate(lambda per_s: 50 < per_s < 250)
    testbed.sender.stop()

    assert end - first > 300


class LateProducer(Producer):
    """Its first record is settled only after some waits."""

    def __init__(self, config: dict[str, str | int]) -> None:
        super().__init__(config)
        self.given = 0
        self.given_before: list[int] = []

    def produce(self, *args: Any, **options: Any) -> None:
        self.given += 1
        super().produce(*args, **options)

    def flush(self, timeout: float = -1) -> int:
        self.given_before.append(self.given)
        return 1 if len(self.given_before) < 5 else super().flush(timeout)


def test_nothing_is_due_until_the_first_record_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the records of the time in which the client connects follow in a burst."""
    monkeypatch.setattr(f"{__name__}.Producer", LateProducer)
    testbed = SenderTestbed(Numbered(records=5000, rate_per_s=100_000), **MOCK)
    testbed.wait_until(lambda: testbed.sender.done)

    producer = testbed.sender._producer
    assert isinstance(producer, LateProducer)
    assert producer.given_before[:5] == [1] * 5
    assert testbed.sender.sent == 5000


def test_a_blocked_load_still_applies_change_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "STOP_FLUSH_S", 0.1)
    workload = Numbered(records=200_000, rate_per_s=200_000, delivery_timeout_s=30)
    unreachable: dict[str, str | int] = {
        "bootstrap.servers": "127.0.0.1:1",
        "log_level": 0,
        "queue.buffering.max.messages": 100,
    }
    testbed = SenderTestbed(workload, **unreachable)
    testbed.sender.steer("skew", {"hot_share": 0.5})

    assert testbed.sender.settle("skew") <= 101
    testbed.sender.stop()


def test_a_change_request_after_the_end_is_rejected() -> None:
    testbed = SenderTestbed(Numbered(records=50, rate_per_s=10_000), **MOCK)
    testbed.wait_until(lambda: testbed.sender.done)

    with pytest.raises(WorkloadFinished, match="had sent all of its records"):
        testbed.sender.steer("skew", {"hot_share": 0.5})
    assert testbed.sender.settle("skew") == 50
    assert testbed.sender.sent_under("skew")["finished"]
    assert scheduled_changes_of(testbed.history()) == ()


def test_ranges_are_taken_in_order_of_the_index() -> None:
    pending = PendingRanges()
    pending.add(6)
    for index in (1, 2, 5):
        pending.settle(index, SendStatus.ACKNOWLEDGED)
    assert pending.take() == []

    pending.settle(0, SendStatus.UNKNOWN)
    assert pending.take() == [
        SendRange(0, 0, SendStatus.UNKNOWN),
        SendRange(1, 2, SendStatus.ACKNOWLEDGED),
    ]

    pending.settle_rest(SendStatus.FAILED)
    assert pending.take() == [
        SendRange(3, 4, SendStatus.FAILED),
        SendRange(5, 5, SendStatus.ACKNOWLEDGED),
    ]
    assert pending.counts == {
        SendStatus.ACKNOWLEDGED: 3,
        SendStatus.FAILED: 2,
        SendStatus.UNKNOWN: 1,
    }


def test_the_pauses_between_acknowledgements_are_measured() -> None:
    times = AcknowledgementTimes()
    assert times.take() == {"acknowledged_until_ns": None, "pauses_ns": []}
    for at_s in (7.0, 7.499, 7.999, 12.0, 12.1):
        times.acknowledged(round(at_s * 1e9))

    pauses_ns = [[7_499_000_000, 7_999_000_000], [7_999_000_000, 12_000_000_000]]
    assert times.take() == {"acknowledged_until_ns": 12_100_000_000, "pauses_ns": pauses_ns}
    assert times.take() == {"acknowledged_until_ns": 12_100_000_000, "pauses_ns": []}


def test_an_event_of_acknowledged_records_says_when_the_acknowledgements_arrived() -> None:
    testbed = SenderTestbed(Numbered(records=200, rate_per_s=20_000), **MOCK)
    testbed.wait_until(lambda: testbed.sender.done)

    sent = testbed.history().of(Action.SENT)
    assert sent
    for event in sent:
        assert 0 < event.value["acknowledged_until_ns"] <= event.at_ns
        assert isinstance(event.value["pauses_ns"], list)


@pytest.mark.parametrize("gaps", [0, 3])
def test_an_event_contains_every_range_of_a_status(gaps: int) -> None:
    ranges = [
        SendRange(10 * number, 10 * number + 4, SendStatus.ACKNOWLEDGED)
        for number in range(gaps + 1)
    ]

    ((_, value),) = sent_values(ranges)

    assert value["count"] == 5 * (gaps + 1)
    assert (value["first"], value["last"]) == (0, 10 * gaps + 4)
    assert ("ranges" in value) == (gaps > 0)


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

    assert sent_ranges(recorded.history(), 400) == [SendRange(*sent) for sent in known]
    problems = list(send_problems(recorded.history()))
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
def test_missing_first_and_last_records_are_reported(
    first: int, settled: int | None, message: str
) -> None:
    recorded = Story().at(
        1, Action.SENT, status="acknowledged", first=first, last=399, count=400 - first
    )
    counts = {} if settled is None else {"acknowledged": settled, "failed": 0, "unknown": 0}
    recorded.at(3, Action.WORKLOAD_DONE, **counts)

    assert [sent.size for sent in sent_ranges(recorded.history(), 400) if sent.status == OK] == [
        400 - first
    ]
    problems = list(send_problems(recorded.history()))
    assert len(problems) == bool(message)
    assert all(message in problem for problem in problems)


def test_ranges_of_two_statuses_complete_each_other() -> None:
    recorded = Story().at(
        1, Action.SENT, status="acknowledged", first=0, last=9, count=8, ranges=[[0, 3], [6, 9]]
    )
    recorded.at(1, Action.SENT, status="failed", first=4, last=5, count=2).at(
        2, Action.WORKLOAD_DONE
    )

    assert [sent.size for sent in sent_ranges(recorded.history(), 10)] == [4, 2, 4]


@pytest.mark.parametrize(
    ("status", "problems"),
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
def test_recorded_results_that_differ_from_the_counts_of_the_workload_are_reported(
    status: str, problems: list[str]
) -> None:
    recorded = Story().at(1, Action.SENT, status="acknowledged", first=0, last=349, count=350)
    recorded.at(2, Action.SENT, status=status, first=350, last=399, count=50)
    recorded.at(3, Action.WORKLOAD_DONE, acknowledged=400, failed=0, unknown=0)
    assert list(send_problems(recorded.history())) == problems
