"""The events and samples of the output watch, for a topic with open transactions."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.load import OutputWatch, RunLoad
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics, by_series
from tests.fakes import TOPOLOGY, fake_cluster

PROMISE = {"outputs": {"totals": {"kafka": "totals-topic"}, "files": {"hdfs": "/output"}}}


class Topic:
    """A topic of two partitions whose end offsets a test sets."""

    def __init__(self) -> None:
        self.stable = {0: 0, 1: 0}
        self.open = {0: 0, 1: 0}
        self.unreachable = ""
        """The offsets that cannot be fetched: "stable", "end", or none."""
        self.unreported: set[int] = set()
        """Partitions without a high watermark."""

    def end_offsets(
        self, cluster: Any, service: str, topic: str, *, committed: bool = True
    ) -> Mapping[int, int]:
        if self.unreachable == ("stable" if committed else "end"):
            raise KafkaUnreachable("no answer in time")
        assert (service, topic) == ("kafka", "totals-topic")
        known = {n: end for n, end in self.stable.items() if committed or n not in self.unreported}
        return {n: end + (0 if committed else self.open[n]) for n, end in known.items()}


class WatchTestbed:
    """An output watch on the fake runtime."""

    def __init__(
        self,
        folder: Path,
        job: Mapping[str, Any] | None = None,
        begins: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        self.clock = FakeClock()
        metrics = Metrics(folder / "metrics.parquet")
        self.loop = EventLoop(
            HistoryWriter(folder / "history.jsonl"), metrics, self.clock, show=lambda: None
        )
        experiment = Experiment.model_validate(
            {
                "name": "watched",
                "topology": TOPOLOGY,
                "workload": {"numbered": {"records": 100, "rate_per_s": 100}},
                "job": job or {"sql": "SELECT 1", "promise": PROMISE},
            }
        )
        cluster = fake_cluster(clock=self.clock)
        cluster.run.begins = begins or {}
        stop = threading.Event()
        self.watch = OutputWatch(experiment, cluster, self.loop, "kafka", "run", stop)

    def poll_after(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.watch.poll()

    def samples(self, series: str) -> dict[str, list[float]]:
        found = by_series(self.loop.metrics.table()).get(series, {})
        return {where: list(np.round(samples.value, 3)) for where, samples in found.items()}


class Reader:
    """A job that reports its read positions, for some partitions."""

    def __init__(self, read: Mapping[int, int]) -> None:
        self._positions = read

    def positions(self, topic: str) -> Mapping[int, int]:
        return self._positions


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    fake = Topic()
    monkeypatch.setattr(kafka_admin, "end_offsets", fake.end_offsets)
    return fake


@pytest.fixture
def testbed(tmp_path: Path, topic: Topic) -> WatchTestbed:
    return WatchTestbed(tmp_path)


def test_records_held_back_by_an_open_transaction_are_sampled_by_partition(
    topic: Topic, testbed: WatchTestbed
) -> None:
    topic.stable, topic.open = {0: 10, 1: 20}, {0: 5, 1: 0}
    testbed.poll_after(1)
    topic.stable, topic.open = {0: 10, 1: 26}, {0: 9, 1: 0}
    testbed.poll_after(1)
    assert testbed.samples("stable_end") == {"totals/0": [10, 10], "totals/1": [20, 26]}
    assert testbed.samples("end") == {"totals/0": [15, 19], "totals/1": [20, 26]}
    assert testbed.samples("held_back") == {"totals/0": [5, 9], "totals/1": [0, 0]}


def test_a_partition_with_an_unknown_end_gets_no_held_back_sample(
    topic: Topic, testbed: WatchTestbed
) -> None:
    topic.stable, topic.open, topic.unreported = {0: 10, 1: 20}, {0: 5, 1: 7}, {1}
    testbed.poll_after(1)
    topic.unreported = set()
    testbed.poll_after(1)
    assert testbed.samples("stable_end") == {"totals/0": [10, 10], "totals/1": [20, 20]}
    assert testbed.samples("end") == {"totals/0": [15, 15], "totals/1": [27]}
    assert testbed.samples("held_back") == {"totals/0": [5, 5], "totals/1": [7]}


def test_samples_are_taken_once_a_second_and_polls_more_often(
    topic: Topic, testbed: WatchTestbed
) -> None:
    for end in range(1, 11):
        topic.stable = {0: end, 1: 0}
        testbed.poll_after(0.2)
    testbed.loop.tick()
    assert testbed.samples("held_back")["totals/0"] == [0, 0]
    assert len(testbed.loop.history().of(Action.OUTPUT_SEEN)) == 10


def test_a_missed_sample_does_not_distort_the_rate(topic: Topic, testbed: WatchTestbed) -> None:
    topic.stable, topic.unreachable = {0: 10, 1: 0}, "end"
    with pytest.raises(KafkaUnreachable):
        testbed.poll_after(1)
    topic.stable, topic.unreachable = {0: 20, 1: 0}, ""
    testbed.poll_after(1)
    assert testbed.samples("output_per_s")["totals"] == [10, 10]
    assert testbed.samples("held_back") == {"totals/0": [0], "totals/1": [0]}


@pytest.mark.parametrize(
    ("read", "lag"),
    [({}, 10), ({0: 100, 1: 100}, 0), ({0: 60, 1: 100}, 40), ({0: 100}, 10)],
    ids=["reports-none", "read-all", "behind-its-group", "reports-one"],
)
def test_positions_reported_by_the_job_precede_offsets_of_its_group(
    read: Mapping[int, int], lag: int, testbed: WatchTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_admin, "end_offsets", lambda *_: {0: 100, 1: 100})
    monkeypatch.setattr(kafka_admin, "group_offsets", lambda *_: {0: 100, 1: 90})
    assert testbed.watch.lag(Reader(read)) == lag  # type: ignore[arg-type]


def test_the_last_sample_of_the_lag_is_where_the_job_has_read(
    topic: Topic, testbed: WatchTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: Any = None
    job: Any = Reader({0: 100, 1: 100})
    monkeypatch.setattr(kafka_admin, "end_offsets", lambda *_, **__: {0: 100, 1: 100})
    monkeypatch.setattr(kafka_admin, "group_offsets", lambda *_: {0: 100, 1: 90})
    monkeypatch.setattr(testbed.watch, "_samples_lag", True)
    testbed.poll_after(1)
    RunLoad(running=running, seconds=1, watch=testbed.watch).sample_last_lag(job)
    testbed.poll_after(1)
    assert testbed.samples("lag") == {"input": [10, 0]}


def test_without_an_answer_of_kafka_the_lag_has_no_last_sample(
    topic: Topic, testbed: WatchTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: Any = None
    topic.unreachable = "stable"
    monkeypatch.setattr(testbed.watch, "_samples_lag", True)
    RunLoad(running=running, seconds=1, watch=testbed.watch).sample_last_lag(None)
    assert testbed.samples("lag") == {}
