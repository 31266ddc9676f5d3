"""The verdict of `latency` on given times, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import ExistingJob, Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.verdict.checks import latency
from streamquake.harness.verdict.checks.latency import Latency
from streamquake.harness.verdict.evidence.append_times import AppendedRecords, AppendTimesUnknown
from streamquake.harness.verdict.evidence.latency import (
    Latencies,
    LatencyQuantiles,
    _stable_end_moves,
)
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics, Samples
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, experiment, no_spark

TOTALS = Output(kafka="totals", compare=("amount",))
QUICK = LatencyQuantiles(records=1500, never=0, p50_ms=20.4, p99_ms=80.6, max_ms=300.5)
READ = LatencyQuantiles(records=1500, never=0, p50_ms=2000.0, p99_ms=4000.0, max_ms=5000.0)
NONE = LatencyQuantiles(records=0, never=0, p50_ms=None, p99_ms=None, max_ms=None)
FOUND = Latencies(
    written=QUICK,
    before=replace(QUICK, records=100, p99_ms=60.0),
    since=replace(QUICK, max_ms=1300.6),
    committed=READ,
    at_best=READ,
)


@dataclass
class World:
    folder: Path
    found: Latencies = FOUND
    output: Output = TOTALS
    sink: Literal["exactly-once", "at-least-once"] = "exactly-once"
    has_markers: bool = False
    injected: bool = True
    phases: tuple[str, ...] = ("steady", "disturb")
    expected: tuple[str, ...] = ("totals",)
    sampled: tuple[str, ...] = ("totals/0", "totals/3", "others/1")
    notes: Sequence[SentRange] = ()
    ends: Mapping[int, Samples] = field(default_factory=dict)
    calls: list[str | None] = field(default_factory=list)

    def append_times_of(self, case: JudgedRun, name: str | None) -> AppendedRecords:
        self.calls.append(name)
        if name == "files":
            raise AppendTimesUnknown("files is no output that is a topic")
        records: Any = None
        return AppendedRecords(
            name="totals",
            topic="totals",
            partitions=4,
            records=records,
            map={},
            began_ms=0,
            has_markers=self.has_markers,
        )

    @contextmanager
    def expectations(self, case: JudgedRun) -> Iterator[dict[str, str]]:
        yield {name: f"expected of {name}" for name in self.expected}

    def latencies_of(
        self,
        case: JudgedRun,
        output: AppendedRecords,
        wanted: Any,
        notes: Sequence[SentRange],
        ends: Mapping[int, Samples],
    ) -> Latencies:
        assert (output.name, wanted) == ("totals", "expected of totals")
        assert self.calls[-1] == "sent", "the view is created before it is read"
        self.notes, self.ends = notes, ends
        return self.found

    def judged(self, **params: Any) -> CheckResult:
        recorded = Story()
        for at_s, first in ((2.0, 0), (5.0, 10), (9.0, 20)):
            recorded.at(at_s, Action.SENT, first=first, last=first + 9, status="acknowledged")
            if at_s == 2.0:
                for phase in self.phases:
                    recorded.at(5.0 if phase == "disturb" else 4.0, Action.PHASE, phase=phase)
        if self.injected:
            about = {"step": 0, "fault": "kill", "seen_ns": 10 * 10**9, "evidence": {}}
            recorded.at(10, Action.FAULT_IN_EFFECT, **about)
        metrics = Metrics(self.folder / "metrics.parquet")
        for where in self.sampled:
            metrics.add(10**9, "stable_end", where, len(where))
        metrics.flush()
        job = Job(
            sql="SELECT 1", sink=self.sink, promise=JobPromise(outputs={"totals": self.output})
        )
        case = JudgedRun(
            experiment=experiment().model_copy(update={"job": job}),
            history=recorded.history(),
            data=self.folder,
            metrics=self.folder / "metrics.parquet",
            spark=no_spark,
        )
        return Latency(**{"p50_within_s": 2.0, **params}).check(case)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    created = World(tmp_path)
    monkeypatch.setattr(latency, "append_times_of", created.append_times_of)
    monkeypatch.setattr(latency, "_latencies", created.latencies_of)
    monkeypatch.setattr(latency, "register_sent", lambda case: created.calls.append("sent"))
    monkeypatch.setattr(latency, "expectations", created.expectations)
    return created


def test_records_read_in_time_are_held_with_all_figures(world: World) -> None:
    result = world.judged(output="totals")

    assert result.outcome == Outcome.HELD
    assert result.summary == (
        "half of the records of totals could be read as committed 2.0 s after they were sent, 2 s "
        "allowed"
    )
    assert result.counts == {
        "p50_ms": 20,
        "p99_ms": 81,
        "max_ms": 300,
        "committed_p50_ms": 2000,
        "committed_p99_ms": 4000,
        "committed_max_ms": 5000,
        "records": 1500,
        "never_came": 0,
        "committed": 1500,
        "failure_cost_ms": 1241,
    }
    assert world.calls == ["totals", "sent"]
    assert {lane: samples.value.tolist() for lane, samples in world.ends.items()} == {
        0: [8.0],
        3: [8.0],
    }


def test_records_read_too_late_are_violated(world: World) -> None:
    result = world.judged(p50_within_s=1.999)
    assert result.outcome == Outcome.VIOLATED
    (finding,) = result.findings
    assert (finding.what, finding.where, finding.detail) == ("late", "totals", result.counts)


def test_records_that_never_arrived_are_counted_as_infinitely_late(world: World) -> None:
    never_arrived = LatencyQuantiles(records=700, never=1300, p50_ms=inf, p99_ms=inf, max_ms=inf)
    world.found = replace(
        FOUND,
        written=never_arrived,
        since=never_arrived,
        committed=never_arrived,
        at_best=never_arrived,
    )
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == (
        "half of the records of totals were not seen to become readable as committed, 2 s "
        "allowed; 1,300 of 2,000 never arrived"
    )
    assert (result.counts["p50_ms"], result.counts["never_came"]) == (None, 1300)
    assert result.counts["failure_cost_ms"] is None


def test_records_that_may_have_been_readable_at_once_are_undecided(world: World) -> None:
    unseen = LatencyQuantiles(records=500, never=1500, p50_ms=inf, p99_ms=inf, max_ms=inf)
    world.found = replace(FOUND, committed=unseen, at_best=replace(READ, never=3))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; of 1,497 records it is not known when they could be read")
    assert result.counts["committed"] == 500


def test_records_that_became_readable_in_a_hole_of_the_samples_are_undecided(world: World) -> None:
    """It was in time at the start of the hole, and late at its end."""
    world.found = replace(FOUND, committed=replace(READ, p50_ms=14_000.0))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith(
        "14.0 s after they were sent, 2 s allowed; samples of the stable ends are missing, and at "
        "best it was 2.0 s"
    )
    world.found = replace(world.found, at_best=replace(READ, p50_ms=2000.1))
    assert world.judged().outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("before_s", "soonest_s", "moved_s"), [(7.0, 8.5, 8.5), (6.9, 6.9, 10.0), (2.0, 2.0, 10.0)]
)
def test_a_usual_gap_of_the_samples_counts_as_its_midpoint_and_a_hole_as_its_ends(
    before_s: float, soonest_s: float, moved_s: float
) -> None:
    samples = Samples(at_s=np.array([1.0, before_s, 10.0]), value=np.array([5.0, 5.0, 9.0]))
    ((hidden, stable, soonest_ms, moved_ms),) = _stable_end_moves(samples, 1000)
    assert (hidden, stable) == (5, 9)
    assert (soonest_ms, moved_ms) == pytest.approx((1000 * soonest_s + 1000, 1000 * moved_s + 1000))


@pytest.mark.parametrize(
    ("arrived", "never", "outcome"),
    [(99, 0, Outcome.UNDECIDED), (100, 0, Outcome.HELD), (60, 40, Outcome.HELD)],
)
def test_a_hundred_records_are_needed(
    world: World, arrived: int, never: int, outcome: Outcome
) -> None:
    world.found = replace(FOUND, written=replace(QUICK, records=arrived, never=never))
    result = world.judged()
    assert result.outcome == outcome
    assert (outcome == Outcome.HELD) or result.summary == (
        "totals: 99 records were sent once the system was steady, and at least 100 are needed"
    )
    assert result.counts["records"] == arrived


@pytest.mark.parametrize(
    "changed",
    [
        {"injected": False},
        {"found": replace(FOUND, before=replace(FOUND.before, records=99))},
        {"found": replace(FOUND, before=replace(FOUND.before, p99_ms=None))},
        {"found": replace(FOUND, since=NONE)},
    ],
)
def test_without_either_side_of_a_fault_there_is_no_cost(
    world: World, changed: dict[str, Any]
) -> None:
    for name, value in changed.items():
        setattr(world, name, value)
    result = world.judged()
    assert (result.outcome, result.counts["failure_cost_ms"]) == (Outcome.HELD, None)


def test_without_records_there_are_no_times(world: World) -> None:
    world.found = replace(FOUND, committed=NONE, at_best=NONE)
    result = world.judged()
    assert result.outcome == Outcome.HELD
    assert (result.counts["committed_p50_ms"], result.counts["committed"]) == (None, 0)
    assert "could be read as committed 0.0 s after" in result.summary


@pytest.mark.parametrize(
    ("phases", "first"), [(("steady", "disturb"), [10, 20]), (("steady",), [0, 10, 20])]
)
def test_records_count_from_the_steady_state(
    world: World, phases: tuple[str, ...], first: list[int]
) -> None:
    world.phases = phases
    world.judged()
    assert [note.first for note in world.notes] == first


def test_records_written_without_transactions_need_no_stable_ends(world: World) -> None:
    world.sampled, world.sink = ("others/1",), "at-least-once"
    assert world.judged().outcome == Outcome.HELD
    assert world.ends == {}


def test_a_topic_with_markers_of_transactions_needs_stable_ends(world: World) -> None:
    """Whatever the job says of its sink: a running job's own setting is not known."""
    world.sampled, world.sink, world.has_markers = ("others/1",), "at-least-once", True
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert "its stable ends were not sampled" in result.summary


@pytest.mark.parametrize(
    ("changed", "params", "why"),
    [
        ({}, {"output": "files"}, "files is no output that is a topic"),
        (
            {"output": TOTALS.model_copy(update={"identity": ("key", "window")})},
            {},
            "totals: its records are identified by key, window, and only with key and seq can one "
            "be traced to its send",
        ),
        (
            {"sampled": ("others/1",)},
            {},
            "totals: its stable ends were not sampled, so that it is not known when records could "
            "be read as committed",
        ),
        (
            {"expected": ("other",)},
            {},
            "totals: its expected records are not known; give it `expected`",
        ),
    ],
)
def test_without_evidence_there_is_no_verdict(
    world: World, changed: dict[str, Any], params: dict[str, Any], why: str
) -> None:
    for name, value in changed.items():
        setattr(world, name, value)
    result = world.judged(**params)
    assert (result.outcome, result.summary, result.counts) == (Outcome.UNDECIDED, why, {})


def test_without_sends_since_the_steady_state_it_is_undecided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "sent_ranges_of", lambda history: [SentRange(0, 9, 0, 2 * 10**9)])
    assert world.judged().summary == "nothing was sent once the system was steady"


class TracedRecords:
    """Traced records: `read` once the stable ends were joined to them."""

    def __init__(self, *, read: bool = False) -> None:
        self.read = read

    def withColumns(self, columns: Any) -> TracedRecords:
        return self


@pytest.mark.parametrize("has_markers", [False, True])
def test_records_of_a_running_job_are_readable_after_their_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_markers: bool
) -> None:
    """What a job that ran before does is known from the markers in its topic."""
    monkeypatch.setattr(latency, "has_status", lambda *_: False)
    monkeypatch.setattr(latency, "F", SimpleNamespace(col=str))
    monkeypatch.setattr(latency, "trace_records", lambda *_: TracedRecords())
    monkeypatch.setattr(latency, "with_read_ms", lambda *_: TracedRecords(read=True))
    monkeypatch.setattr(
        latency,
        "latencies_of",
        lambda records, *_: replace(FOUND, committed=READ if records.read else QUICK),
    )
    promise = JobPromise(outputs={"totals": TOTALS})
    job = Job(existing=ExistingJob(), promise=promise)
    judged = JudgedRun(
        experiment=experiment().model_copy(update={"job": job}),
        history=Story().at(70, Action.DRAINED).history(),
        data=tmp_path,
        metrics=tmp_path / "none",
        spark=lambda: None,  # type: ignore[arg-type, return-value]
    )
    records: Any = None
    output = AppendedRecords(
        name="totals",
        topic="totals",
        partitions=4,
        records=records,
        map={},
        began_ms=0,
        has_markers=has_markers,
    )
    found = latency._latencies(judged, output, records, (), {})
    assert found.committed == (READ if has_markers else QUICK)
