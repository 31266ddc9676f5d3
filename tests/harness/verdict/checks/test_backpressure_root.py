"""The root of back-pressure: one recorded job, and the same job with one figure or fault
changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.checks.backpressure_root import BackpressureRoot
from streamquake.harness.verdict.evidence.bottleneck import JobGraph
from streamquake.harness.verdict.evidence.slowdown_cause import SlowdownCause, injected_cause
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.fakes import WIDE
from tests.harness.histories import Story, no_spark

SOURCE = "Source: input[1] -> Calc[2]"
TOTALS = "OverAggregate[4] -> Calc[5]"
SINK = "totals[6]: Writer -> totals[6]: Committer"
FILES = "archive[7]: Writer"
END = "end: Writer"
EDGES = (
    (SOURCE, TOTALS, "HASH"),
    (TOTALS, SINK, "REBALANCE"),
    (TOTALS, FILES, "REBALANCE"),
    (FILES, END, "REBALANCE"),
)
START_S, HEALED_S = 10, 25


EXPERIMENT = Experiment.model_validate(
    {
        "name": "by-hand",
        "topology": WIDE,
        "workload": {"numbered": {"records": 9, "rate_per_s": 9}},
        "job": {"sql": "SELECT 1", "promise": {"outputs": {"totals": {"kafka": "totals-topic"}}}},
    }
)


@dataclass(frozen=True)
class VertexShares:
    """Shares of time of a vertex's worst subtask; None is not sampled."""

    pressed: float
    busy: float | None
    pool: float | None


WAITS, WORKS, IDLE = (
    VertexShares(0.9, 0.1, 1.0),
    VertexShares(0.0, 0.98, 1.0),
    VertexShares(0.0, 0.05, 0.0),
)


@dataclass(frozen=True)
class Run:
    """A job of five vertices with a slow Kafka sink, and the fault that slows it."""

    did: Mapping[str, VertexShares] = field(
        default_factory=lambda: {SOURCE: WAITS, TOTALS: WAITS, SINK: WORKS, FILES: IDLE, END: IDLE}
    )
    fault: str | None = "slow_operator"
    target: str = "all of flink/taskmanager"
    params: Mapping[str, Any] = field(default_factory=lambda: {"delay_ms": 5, "operator": "totals"})
    at: tuple[str, ...] = ()
    samples_until_s: int = 40
    missed: range = range(0)
    """The seconds without samples."""
    submitted: bool = True
    steady: bool = True
    again: bool = False
    """Whether the fault was called again, without a verified effect."""
    ended_early_s: float | None = None
    """When the fault was observed to have ended by itself."""
    other: tuple[str, float, float] | None = None
    """Another fault: its name, its effect and its heal."""
    slow_from_s: float = START_S + 1
    slow_until_s: float = HEALED_S
    """From when until when the vertices do as in `did`."""
    ended_s: float | None = 38
    """When the load ended; None where that was not recorded."""
    called_s: float = START_S - 1
    healed_s: float = HEALED_S
    verified: bool = True
    """Whether the effect of the fault was verified."""

    def but(self, **did: VertexShares) -> Run:
        names = {"source": SOURCE, "totals": TOTALS, "sink": SINK, "files": FILES, "end": END}
        return replace(self, did={**self.did, **{names[key]: it for key, it in did.items()}})

    def story(self) -> Story:
        story = Story()
        if self.submitted:
            vertices = [
                {"id": f"id of {name}", "name": name, "parallelism": 2} for name in self.did
            ]
            edges = [
                {"from": f"id of {a}", "to": f"id of {b}", "ship": ship} for a, b, ship in EDGES
            ]
            story.at(1, Action.JOB_SUBMITTED, vertices=vertices, edges=edges)
        story.at(2, Action.PHASE, phase="steady")
        if self.steady:
            story.at(5, Action.PHASE, phase="disturb")
        if self.fault is not None:
            about = {"step": 0, "fault": self.fault, "target": self.target}
            evidence = {"flink/taskmanager-1": {"hits": 3, "at": list(self.at)}}
            story.at(self.called_s, Action.FAULT_CALLED, **about, params=dict(self.params))
            if self.verified:
                seen = {"seen_ns": START_S * 10**9, "evidence": evidence}
                story.at(START_S, Action.FAULT_IN_EFFECT, **about, **seen)
            if self.again:
                story.at(START_S + 2, Action.FAULT_CALLED, **about, params=dict(self.params))
            if self.ended_early_s is not None:
                early = {"seen_ns": int(self.ended_early_s * 1e9), "reason": "the agent is gone"}
                story.at(self.ended_early_s, Action.FAULT_ENDED_EARLY, **about, **early)
            story.at(self.healed_s, Action.HEAL_CALLED, **about)
            story.at(self.healed_s + 1, Action.FAULT_HEALED, **about)
        if self.other is not None:
            name, start_s, end_s = self.other
            about = {"step": 1, "fault": name, "target": "one of flink/taskmanager"}
            story.at(start_s, Action.FAULT_CALLED, **about)
            story.at(start_s, Action.FAULT_IN_EFFECT, **about, seen_ns=int(start_s * 1e9))
            story.at(end_s, Action.FAULT_HEALED, **about, seen_ns=int(end_s * 1e9))
        if self.ended_s is not None:
            story.at(self.ended_s, Action.WORKLOAD_DONE)
        return story.at(40, Action.PHASE, phase="collect")

    def record(self, path: Path) -> None:
        metrics = Metrics(path)
        for at_s in (each for each in range(self.samples_until_s) if each not in self.missed):
            slow = self.fault is None or self.slow_from_s <= at_s <= self.slow_until_s
            for name, did in self.did.items():
                seen = did if slow else IDLE
                busy_ms = None if seen.busy is None else seen.busy * 1000
                rest_ms = 1000 - seen.pressed * 1000 - (busy_ms or 0)
                for series, value in {
                    "back_pressured_ms_per_s": seen.pressed * 1000,
                    "busy_ms_per_s": busy_ms,
                    "idle_ms_per_s": rest_ms,
                }.items():
                    if value is not None:
                        metrics.add(at_s * 10**9, series, name, value)
                        metrics.add(at_s * 10**9, f"{series}_max", name, value)
                if seen.pool is not None:
                    metrics.add(at_s * 10**9, "input_pool_usage_max", name, seen.pool)
        metrics.flush()

    def judged(self, folder: Path, **parameters: Any) -> CheckResult:
        self.record(folder / "metrics.parquet")
        case = JudgedRun(
            experiment=EXPERIMENT,
            history=self.story().history(),
            data=folder,
            metrics=folder / "metrics.parquet",
            spark=no_spark,
        )
        return BackpressureRoot(**parameters).check(case)


GOOD = Run()
LINK = replace(GOOD.but(sink=IDLE, totals=IDLE), fault="slow_link", target="link data", params={})


def test_the_slow_operator_is_found_downstream_of_the_last_back_pressured_vertex(
    tmp_path: Path,
) -> None:
    result = GOOD.judged(tmp_path)
    assert result.outcome == Outcome.HELD, result.summary
    assert SINK in result.summary
    assert result.counts[f"{SOURCE}.back_pressured"] == pytest.approx(0.9)
    assert result.counts["root_busy"] == pytest.approx(0.98)
    assert (result.counts["high"], result.counts["root_is_link"]) == (2, 0)


@pytest.mark.parametrize(
    ("slow_from_s", "missed", "outcome"),
    [
        (0, range(0), Outcome.UNDECIDED),
        (7, range(0), Outcome.UNDECIDED),
        (0, range(5, 8), Outcome.HELD),
        (10, range(0), Outcome.HELD),
    ],
)
def test_a_root_that_was_there_before_the_fault_does_not_show_its_effect(
    tmp_path: Path, slow_from_s: float, missed: range, outcome: Outcome
) -> None:
    """The steady state begins at 5 s, and the fault is called at 9.9 s: five samples."""
    run = replace(GOOD, slow_from_s=slow_from_s, missed=missed, called_s=9.9)
    result = run.judged(tmp_path)
    assert result.outcome == outcome, result.summary
    same = "it was the same before the fault" in result.summary
    assert same == (outcome == Outcome.UNDECIDED)


def test_another_root_before_the_fault_is_no_matter(tmp_path: Path) -> None:
    wrong = replace(GOOD, slow_from_s=0, params={"delay_ms": 5, "operator": "OverAggregate"})
    assert wrong.judged(tmp_path).outcome == Outcome.VIOLATED


def test_shares_of_time_are_rounded_to_thousandths(tmp_path: Path) -> None:
    exact = GOOD.but(
        source=VertexShares(0.91234, 0.05, 1.0), sink=VertexShares(0.0, 0.87654, 0.98766)
    )
    counts = exact.judged(tmp_path).counts
    assert counts[f"{SOURCE}.back_pressured"] == 0.912
    assert (counts["root_busy"], counts["root_input_pool"]) == (0.877, 0.988)


def test_without_back_pressure_on_one_vertex_another_is_the_root(tmp_path: Path) -> None:
    result = GOOD.but(totals=WORKS).judged(tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == f"the root is {TOTALS}; the slowed part is {SINK}"
    (finding,) = result.findings
    assert finding.detail[SOURCE] == "back-pressured 0.90, busy 0.10, input pool 1.00"


@pytest.mark.parametrize(
    "sink",
    [
        VertexShares(0.0, 0.99, 0.2),
        VertexShares(0.0, 0.99, None),
        VertexShares(0.0, None, 1.0),
        WORKS,
    ],
)
def test_a_full_pool_or_a_busy_consumer_marks_the_root(sink: VertexShares, tmp_path: Path) -> None:
    """While checkpoints align, the pool is not full: then the busy time decides."""
    assert GOOD.but(sink=sink).judged(tmp_path).outcome == Outcome.HELD
    other = GOOD.but(sink=IDLE, files=sink).judged(tmp_path)
    assert other.outcome == Outcome.VIOLATED
    assert f"the root is {FILES}" in other.summary


@pytest.mark.parametrize(
    ("sink", "outcome"),
    [
        (VertexShares(0.0, 0.0, 1.0), Outcome.UNDECIDED),
        (VertexShares(0.0, 0.1, 0.51), Outcome.UNDECIDED),
        (VertexShares(0.0, 0.11, 1.0), Outcome.HELD),
        (VertexShares(0.45, 0.1, 1.0), Outcome.HELD),  # idle less than half of its time
        (VertexShares(0.0, None, 1.0), Outcome.HELD),  # how busy it was is not known
    ],
)
def test_a_root_that_is_idle_with_full_buffers_contradicts_itself(
    sink: VertexShares, outcome: Outcome, tmp_path: Path
) -> None:
    result = GOOD.but(sink=sink).judged(tmp_path)
    assert result.outcome == outcome, result.summary
    assert ("by its full input buffers, and it was idle" in result.summary) == (
        outcome == Outcome.UNDECIDED
    )
    assert GOOD.but(sink=IDLE, files=sink).judged(tmp_path).outcome == (
        Outcome.UNDECIDED if outcome == Outcome.UNDECIDED else Outcome.VIOLATED
    )


def test_a_consumer_with_low_back_pressure_is_skipped(tmp_path: Path) -> None:
    little = GOOD.but(sink=IDLE, files=VertexShares(0.3, 0.6, 1.0), end=WORKS)
    assert f"the root is {END}" in little.judged(tmp_path, expect=END).summary
    last = little.but(end=IDLE).judged(tmp_path, expect="archive")
    assert last.outcome == Outcome.HELD, "nothing downstream of it is slow, so it is the root"


@pytest.mark.parametrize("parameters", [{}, {"expect": "link"}, {"expect": "link into Over"}])
def test_a_consumer_that_lacks_records_means_the_link(
    parameters: dict[str, str], tmp_path: Path
) -> None:
    result = LINK.judged(tmp_path, **parameters)
    assert result.outcome == Outcome.HELD, result.summary
    assert f"link into {TOTALS}" in result.summary
    assert result.counts["root_is_link"] == 1


def test_a_link_may_lead_into_several(tmp_path: Path) -> None:
    result = GOOD.but(sink=IDLE).judged(tmp_path)
    assert result.summary == f"the root is link into {SINK} or {FILES}; the slowed part is {SINK}"


@pytest.mark.parametrize("parameters", [{}, {"expect": "link"}, {"expect": "link into Over"}])
def test_a_consumer_whose_buffers_are_full_does_not(
    parameters: dict[str, str], tmp_path: Path
) -> None:
    result = LINK.but(totals=WORKS).judged(tmp_path, **parameters)
    assert result.outcome == Outcome.VIOLATED
    assert LINK.judged(tmp_path, expect="totals").outcome == Outcome.VIOLATED
    assert LINK.judged(tmp_path, expect="link into totals").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    "slow",
    [
        {"fault": "slow_link", "target": "link sink"},
        {"params": {"delay_ms": 5}, "at": ("totals[6]: Writer subtask 0",)},
    ],
)
def test_the_fault_shows_the_expected_root(slow: dict[str, Any], tmp_path: Path) -> None:
    """A slow link to the topics slows the writing task; without an operator's name the affected
    subtasks of the evidence count."""
    run = replace(GOOD, **slow)
    assert run.judged(tmp_path).outcome == Outcome.HELD
    assert run.but(sink=IDLE, files=WORKS).judged(tmp_path).outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("names", "writer"),
    [
        ((SOURCE, "copies[2]: Writer", "totals[3]: Writer"), 2),
        ((SOURCE, "Map", "Sink: Writer -> Sink: Committer"), 2),
        ((SOURCE, "Map -> some: Writer", "end: Writer"), 1),
    ],
)
def test_a_slow_sink_link_slows_the_vertices_that_write(
    names: tuple[str, ...], writer: int
) -> None:
    graph = JobGraph(names={str(place): name for place, name in enumerate(names)}, edges=())
    story = Story().at(1, Action.FAULT_IN_EFFECT, fault="slow_link", target="link sink")
    attempt = StepAttempt(story.history().of(FaultInEffect))
    assert injected_cause(attempt, EXPERIMENT, graph) == SlowdownCause(vertices=(str(writer),))


def test_skewed_keys_slow_the_vertex_behind_the_hash_exchange(tmp_path: Path) -> None:
    run = replace(GOOD.but(totals=WORKS, sink=IDLE), fault="skew", target="the workload")
    assert run.judged(tmp_path).outcome == Outcome.HELD
    assert GOOD.judged(tmp_path, fault="slow_operator").outcome == Outcome.HELD
    assert replace(GOOD, fault="skew").judged(tmp_path).outcome == Outcome.VIOLATED


@pytest.mark.parametrize("early_s", [15, 20])
def test_a_fault_that_ended_early_is_judged_until_then(early_s: float, tmp_path: Path) -> None:
    """What the job waits for afterwards is not the effect of the fault."""
    of_another_cause = replace(GOOD.but(totals=WORKS), slow_until_s=35)
    assert of_another_cause.judged(tmp_path).outcome == Outcome.VIOLATED
    result = replace(of_another_cause, ended_early_s=early_s).judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED, result.summary
    assert f"from 18.0 s to {early_s}.0 s" in result.summary


@pytest.mark.parametrize("parameters", [{}, {"expect": "none"}, {"expect": "totals"}])
@pytest.mark.parametrize(
    ("start_s", "end_s", "overlaps"),
    [(11, 14, True), (24, 30, True), (4, 8, False), (26, 30, False)],
)
def test_another_fault_in_that_time_may_be_the_root(
    start_s: float, end_s: float, overlaps: bool, parameters: dict[str, str], tmp_path: Path
) -> None:
    two = replace(GOOD.but(totals=WORKS), other=("kill", start_s, end_s))
    result = two.judged(tmp_path, **parameters)
    assert result.outcome == (Outcome.UNDECIDED if overlaps else Outcome.VIOLATED), result.summary
    assert ("; kill on one of flink/taskmanager overlapped" in result.summary) == overlaps


def test_the_expected_root_is_held_beside_another_fault(tmp_path: Path) -> None:
    assert replace(GOOD, other=("kill", 11, 14)).judged(tmp_path).outcome == Outcome.HELD


def test_no_back_pressure_may_be_expected(tmp_path: Path) -> None:
    quiet = GOOD.but(source=IDLE, totals=IDLE, sink=IDLE)
    assert quiet.judged(tmp_path, expect="none").outcome == Outcome.HELD
    assert GOOD.judged(tmp_path, expect="none").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("missed", "outcome"),
    [
        (range(15, 30), Outcome.HELD),  # 16 of 33 s are unknown
        (range(15, 31), Outcome.UNDECIDED),  # 17 s
        (range(24, 40), Outcome.HELD),  # 15 s, until the load ends
        (range(20, 40), Outcome.UNDECIDED),
        (range(22), Outcome.UNDECIDED),
        (range(6, 40, 2), Outcome.HELD),  # usual gaps are not added up
    ],
)
def test_a_hole_of_the_samples_may_hide_back_pressure(
    missed: range, outcome: Outcome, tmp_path: Path
) -> None:
    quiet = replace(GOOD, fault=None).but(source=IDLE, totals=IDLE, sink=IDLE)
    result = replace(quiet, missed=missed).judged(tmp_path, expect="none")
    assert result.outcome == outcome, result.summary
    assert outcome == Outcome.HELD or result.summary.endswith("since samples are missing")


def test_a_run_without_a_fault_is_judged_from_its_steady_state_on(tmp_path: Path) -> None:
    run = replace(GOOD, fault=None)
    assert run.judged(tmp_path, expect="totals").outcome == Outcome.HELD
    assert run.judged(tmp_path, expect="Over").outcome == Outcome.VIOLATED


def test_what_follows_the_load_does_not_thin_out_back_pressure(tmp_path: Path) -> None:
    """Back-pressured until the load ended; the fault was healed much later."""
    drained = replace(GOOD, ended_s=25, slow_until_s=25, healed_s=39)
    assert drained.judged(tmp_path).outcome == Outcome.HELD
    result = drained.judged(tmp_path, expect="none")
    assert result.outcome == Outcome.VIOLATED, result.summary
    assert result.counts[f"{SOURCE}.back_pressured"] == pytest.approx(0.9)


@pytest.mark.parametrize("verified", [True, False])
def test_a_fault_disturbs_from_its_call_on(verified: bool, tmp_path: Path) -> None:
    called = replace(GOOD, fault="kill", called_s=6, verified=verified)
    result = called.judged(tmp_path, expect="none")
    assert result.outcome == Outcome.UNDECIDED
    assert "from 5.0 s to 6.0 s" in result.summary


@pytest.mark.parametrize(
    ("run", "parameters", "reason"),
    [
        (GOOD.but(source=IDLE, totals=IDLE), {}, "no back-pressure is proven"),
        (GOOD, {"min_ratio": 0.95}, "no back-pressure is proven"),
        (replace(GOOD, samples_until_s=16), {}, "fewer than 5 samples"),
        (replace(GOOD, submitted=False), {}, "graph was not seen"),
        (replace(GOOD, again=True), {}, "the last attempt of slow_operator was not in effect"),
        (replace(GOOD, fault="kill"), {"expect": "totals"}, "no back-pressure is proven"),
        (replace(GOOD, fault=None, steady=False), {}, "the run did not reach its steady state"),
        (replace(GOOD, fault=None, samples_until_s=8), {}, "from 5.0 s to 38.0 s"),
        (replace(GOOD, fault=None, samples_until_s=8, ended_s=None), {}, "from 5.0 s to 40.0 s"),
        (GOOD, {"fault": "skew"}, "skew was not in effect"),
        (replace(GOOD, fault=None), {}, "is not known"),
        (replace(GOOD, fault="slow_link", target="link source"), {}, "is not known"),
        (replace(GOOD, params={}, at=("Other[9] subtask 0",)), {}, "is not known"),
        (
            replace(GOOD, params={}, at=tuple(f"{n} subtask 0" for n in GOOD.did)),
            {},
            "is not known",
        ),
        (GOOD, {"expect": "Window"}, "in no vertex's name"),
        (LINK.but(totals=VertexShares(0.0, 0.05, None)), {}, "input buffers"),
    ],
)
def test_without_evidence_there_is_no_verdict(
    run: Run, parameters: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    result = run.judged(tmp_path, **parameters)
    assert result.outcome == Outcome.UNDECIDED
    assert reason in result.summary


@dataclass(frozen=True)
class WithUnverifiedFault(Run):
    """Another fault that slows something is called at 11 s, not verified in time, and healed."""

    def story(self) -> Story:
        story = super().story()
        about = {"step": 1, "fault": "cpu_limit", "target": "one of flink/taskmanager"}
        story.at(11, Action.FAULT_CALLED, **about)
        story.at(21, Action.FAULT_NOT_IN_EFFECT, **about, reason="its effect was not seen")
        story.at(21.1, Action.HEAL_CALLED, **about)
        story.at(30, Action.FAULT_HEALED, **about, seen_ns=30 * 10**9)
        story._events.sort(key=lambda event: event.at_ns)
        return story


@pytest.mark.parametrize("other", ["none", "verified", "unverified"])
def test_a_fault_without_verified_effect_in_that_time_may_be_the_root(
    tmp_path: Path, other: str
) -> None:
    two: Run = GOOD.but(totals=WORKS)
    if other == "unverified":
        two = WithUnverifiedFault(did=two.did)
    if other == "verified":
        two = replace(two, other=("cpu_limit", 11, 30))
    result = two.judged(tmp_path)
    expected = Outcome.VIOLATED if other == "none" else Outcome.UNDECIDED
    assert result.outcome == expected, result.summary
