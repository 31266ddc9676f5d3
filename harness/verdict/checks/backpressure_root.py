"""`backpressure_root`: the root of the back-pressure is what made the job slow.

In a job with operators it is followed through the job's graph. Micro-batches have parts instead of
vertices: the root is the part with most of the growth in batch duration since the fault
(`evidence/batch_parts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.batch_parts import (
    BatchWindow,
    SlowestPart,
    attempts_of,
    batches_around,
    find_slowest_part,
    parts_of,
)
from streamquake.harness.verdict.evidence.bottleneck import (
    BackpressureSource,
    JobGraph,
    VertexLoad,
    load_of,
    root_of,
    unsampled_vertices,
)
from streamquake.harness.verdict.evidence.checkpoints import batches_of, checkpoints_of
from streamquake.harness.verdict.evidence.pressure import HIGH_ABOVE, Series, max_upper_bound
from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.harness.verdict.evidence.slowdown_cause import (
    SLOWING,
    SlowdownCause,
    expected_cause,
    expected_part,
    injected_cause,
)
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, last_attempt
from streamquake.reports.record.fault_events import FaultCalled, FaultInEffect
from streamquake.reports.record.fault_windows import (
    FaultWindow,
    acted_windows,
    fault_windows,
    overlapping,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.metrics import by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.run_events import PhaseBegan

LEAST_SAMPLES = 5
LEAST_BEFORE = 3
"""Samples before a fault that show what the root was then."""
SETTLE_S = 8.0
"""How long after the effect samples count: buffers fill before any task waits, and a task's time is
reported up to five seconds late."""
NONE = "none"
LONG = 2.0
"""A batch in progress for more than this multiple of the longest batch may have fallen behind the
load."""


@dataclass(frozen=True, kw_only=True)
class JudgedWindow:
    """The interval to judge, and the step attempt whose effect it covers, if any."""

    injected_at_s: float
    end_s: float
    attempt: StepAttempt | None = None
    overlapped: tuple[FaultWindow, ...] = ()
    """The other faults that acted in the meantime, or whose removal was not verified before."""

    @property
    def start_s(self) -> float:
        """When the effect appears in samples."""
        return self.injected_at_s + (SETTLE_S if self.attempt else 0.0)


@checks.register
class BackpressureRoot(Check):
    """Held when the root of the back-pressure, by the samples, is what the fault slowed down.

    Another fault that overlaps may be what the job waits for: then another root, or back-pressure
    where none is expected, is undecided. So is a root with full input buffers that was idle.
    """

    name: ClassVar[str] = "backpressure_root"
    classes: ClassVar[tuple[str, ...]] = ("back-pressured", "another root")

    expect: Annotated[str, Field(min_length=1)] | None = None
    """The expected root: text in the name of a vertex or of a batch's part; `link`, or `link into
    TEXT`; or `none` when nothing may be back-pressured. Without it, what the fault slowed down."""
    fault: str | None = None
    """The fault whose effect is judged. Without it, the first fault that slows a job down; in a run
    without such a fault, the run until the first fault."""
    min_ratio: Annotated[float, Field(gt=0, lt=1)] = HIGH_ABOVE
    """Share of its time above which a vertex counts as back-pressured. Of micro-batches, one must
    have fallen behind the load."""

    def check(self, case: JudgedRun) -> CheckResult:
        submitted = case.history.of(JobSubmitted)
        graph = JobGraph.of(submitted[-1]) if submitted else JobGraph(names={}, edges=())
        batches = batches_of(case.history)
        if not graph.names and not batches:
            return self.undecided("the job's graph was not seen")
        window = _window(case.history, self.fault)
        if isinstance(window, str):
            return self.undecided(window)
        if batches:
            around = batches_around(batches, window.injected_at_s, window.end_s)
            result = self._of_batches(case, around, window)
        else:
            result = self._of_vertices(case, graph, window)
        if result.outcome == Outcome.VIOLATED and window.overlapped:
            others = ", ".join(f"{other.fault} on {other.target}" for other in window.overlapped)
            return self.undecided(f"{result.summary}; {others} overlapped", (), **result.counts)
        return result

    def _of_vertices(self, case: JudgedRun, graph: JobGraph, window: JudgedWindow) -> CheckResult:
        series = by_series(read_metrics(case.metrics))
        loads = {
            vertex: load
            for vertex, name in graph.names.items()
            if (load := load_of(series, name, window.start_s, window.end_s)) is not None
        }
        counts = _counts(graph, loads)
        if undersampled := sorted(unsampled_vertices(graph, loads, LEAST_SAMPLES)):
            return self.undecided(
                f"fewer than {LEAST_SAMPLES} samples of {undersampled[0]} from "
                f"{window.start_s:.1f} s to {window.end_s:.1f} s",
                (),
                **counts,
            )
        if self.expect == NONE:
            return self._judge_none(graph, loads, series, window, counts)
        return self._judge(
            case, graph, loads, self._root_before(case, graph, series, window), window, counts
        )

    def _judge_none(
        self,
        graph: JobGraph,
        loads: Mapping[str, VertexLoad],
        series: Series,
        window: JudgedWindow,
        counts: Mapping[str, Any],
    ) -> CheckResult:
        """The result for `none`: held if no vertex was back-pressured, nor may have been while
        samples are missing."""
        pressed = self._pressed_vertices(loads)
        counts = {**counts, "high": len(pressed)}
        if pressed:
            finding = Finding(
                what="back-pressured", where=graph.names[pressed[0]], detail=_levels(graph, loads)
            )
            return self.violated(f"{finding.where} was back-pressured", (finding,), **counts)
        for vertex in loads:
            name = graph.names[vertex]
            ratio = max_upper_bound(series, name, window.start_s, window.end_s)
            if ratio > self.min_ratio:
                message = f"{name} may have been back-pressured for {ratio:.2f} of its time"
                return self.undecided(f"{message}, since samples are missing", (), **counts)
        return self.held("no vertex was back-pressured, as expected", **counts)

    def _judge(
        self,
        case: JudgedRun,
        graph: JobGraph,
        loads: Mapping[str, VertexLoad],
        before: BackpressureSource | None,
        window: JudgedWindow,
        counts: Mapping[str, Any],
    ) -> CheckResult:
        """`before` was the root before the fault."""
        pressed = self._pressed_vertices(loads)
        counts = {**counts, "high": len(pressed)}
        root = root_of(graph, loads, pressed)
        if root is None:
            return self.undecided(_unproven(graph, loads, self.min_ratio), **counts)
        if root.is_link and any(loads[vertex].pool is None for vertex in root.vertices):
            return self.undecided("how full the input buffers were was not sampled", **counts)
        message_of_root = _message(root, graph)
        if not root.is_link and loads[root.vertices[0]].is_idle_with_full_buffers:
            idle = loads[root.vertices[0]].idle
            return self.undecided(
                f"the root is {message_of_root} by its full input buffers, and it was idle "
                f"{idle:.2f} of its time",
                **counts,
            )
        expected = self._expected_cause(case, graph, window)
        if expected is None:
            return self.undecided(
                f"the root is {message_of_root}; {self._unknown('vertex')}", **counts
            )
        counts = {**counts, **_of_root(root, loads)}
        if expected.agrees(root) and root == before:
            message = f"the root is {message_of_root}, and it was the same before the fault"
            return self.undecided(message, **counts)
        if expected.agrees(root):
            return self.held(f"the root is {message_of_root}, as expected", **counts)
        expected_root = _message(
            BackpressureSource(vertices=expected.vertices, is_link=expected.is_link), graph
        )
        finding = Finding(
            what="another root",
            where=message_of_root,
            detail={"slow was": expected_root, **_levels(graph, loads)},
        )
        message = f"the root is {message_of_root}; the slowed part is {expected_root}"
        return self.violated(message, (finding,), **counts)

    def _root_before(
        self, case: JudgedRun, graph: JobGraph, series: Series, window: JudgedWindow
    ) -> BackpressureSource | None:
        """The root between the steady state and the call of the fault; None where there was none,
        or too few samples. A job that was saturated anyway does not show what the fault did."""
        phases = {event.phase: event.at_s for event in case.history.of(PhaseBegan)}
        called = window.attempt.get(FaultCalled) if window.attempt else None
        if called is None or "disturb" not in phases:
            return None
        loads = {
            vertex: load
            for vertex, name in graph.names.items()
            if (load := load_of(series, name, phases["disturb"], called.at_s)) is not None
        }
        if any(unsampled_vertices(graph, loads, LEAST_BEFORE)):
            return None
        return root_of(graph, loads, self._pressed_vertices(loads))

    def _pressed_vertices(self, loads: Mapping[str, VertexLoad]) -> list[str]:
        return [vertex for vertex, load in loads.items() if load.pressed.max > self.min_ratio]

    def _of_batches(
        self, case: JudgedRun, around: BatchWindow, window: JudgedWindow
    ) -> CheckResult:
        counts: dict[str, Any] = {
            "batches": len(around.during),
            "fell_behind": len(around.fell_behind),
        }
        if self.expect == NONE and around.during:
            if not around.fell_behind:
                if why := _unfinished_batch(case.history, window.end_s):
                    return self.undecided(why, **counts)
                return self.held("no batch fell behind the load, as expected", **counts)
            where = f"batch {around.fell_behind[0].number}"
            finding = Finding(what="back-pressured", where=where, detail=counts)
            return self.violated(f"{where} fell behind the load", (finding,), **counts)
        if around.uncertainty:
            return self.undecided(around.uncertainty, **counts)
        usual, during = (
            [parts_of(batch, attempts_of(batch, case.history)) for batch in batches]
            for batches in (around.usual, around.during)
        )
        slowest = find_slowest_part(usual, during)
        if slowest is None or not slowest.is_proven:
            return self.undecided(
                "no part accounts for most of the time by which the batches took longer", **counts
            )
        counts["root_longer_ms"] = round(slowest.growth_ms)
        return self._judge_part(case, window, slowest, counts)

    def _judge_part(
        self, case: JudgedRun, window: JudgedWindow, slowest: SlowestPart, counts: Mapping[str, Any]
    ) -> CheckResult:
        growth: Mapping[str, Any] = {
            f"{part}.longer_ms": round(growth_ms) for part, growth_ms in slowest.growth.items()
        }
        message_of_root = f"the root is the part {slowest.part}"
        expected_text = self.expect or (
            expected_part(window.attempt, case.experiment) if window.attempt else None
        )
        expected_parts = [
            part for part in slowest.growth if expected_text is not None and expected_text in part
        ]
        if not 0 < len(expected_parts) < len(slowest.growth):
            return self.undecided(f"{message_of_root}; {self._unknown('part')}", **counts, **growth)
        if slowest.part in expected_parts:
            message = f"{message_of_root}, {slowest.growth_ms:,.0f} ms longer than before"
            return self.held(message, **counts, **growth)
        detail = {"slow was": expected_parts[0], **growth}
        finding = Finding(what="another root", where=slowest.part, detail=detail)
        message = f"{message_of_root}; the slowed part is {expected_parts[0]}"
        return self.violated(message, (finding,), **counts, **growth)

    def _expected_cause(
        self, case: JudgedRun, graph: JobGraph, window: JudgedWindow
    ) -> SlowdownCause | None:
        if self.expect is not None:
            return expected_cause(self.expect, graph)
        return injected_cause(window.attempt, case.experiment, graph) if window.attempt else None

    def _unknown(self, kind: str) -> str:
        if self.expect is not None:
            return f"\"{self.expect}\" is in no {kind}'s name, or in every one's"
        return "what slowed the job down is not known; name it with `expect`"


def _window(history: History, fault: str | None) -> JudgedWindow | str:
    """The interval to judge, or a message why there is none."""
    injected = history.of(FaultInEffect)
    names = SLOWING if fault is None else (fault,)
    first = next((event for event in injected if event.fault in names), None)
    if first is None and fault is not None:
        return f"{fault} was not in effect"
    if first is None:
        return _undisturbed_window(history)
    attempt = last_attempt(history, first.step)
    if (effect := attempt.get(FaultInEffect)) is None:
        return f"the last attempt of {first.fault} was not in effect"
    acted = acted_windows(history)
    window = next(each for each in reversed(acted) if each.step == first.step)
    until_s = window.acted_until_s
    load_ended_s = _load_ended_s(history)
    return JudgedWindow(
        injected_at_s=effect.seen_ns / 1e9,
        end_s=load_ended_s if until_s is None else min(until_s, load_ended_s),
        attempt=attempt,
        overlapped=overlapping(window, [e for e in fault_windows(history) if e != window]),
    )


def _undisturbed_window(history: History) -> JudgedWindow | str:
    """The interval from steady state to the end of the load, or to the call of the first fault,
    which may act before its effect is verified."""
    phases = {event.phase: event.at_s for event in history.of(PhaseBegan)}
    if "disturb" not in phases:
        return "the run did not reach its steady state"
    called_s = (window.called_s for window in fault_windows(history))
    return JudgedWindow(
        injected_at_s=phases["disturb"], end_s=min([_load_ended_s(history), *called_s])
    )


def _load_ended_s(history: History) -> float:
    """When the load ended; the end of the record where that was not seen."""
    ended_ns = load_ended_ns(history)
    return (history.ended_ns if ended_ns is None else ended_ns) / 1e9


def _unfinished_batch(history: History, until_s: float) -> str:
    """A message if the newest batch has no recorded end and had been in progress for long; else
    empty."""
    started = [each for each in checkpoints_of(history) if each.micro_batch]
    if not started or started[-1].ended_s is not None:
        return ""
    longest = max((each.took_ms / 1000 for each in batches_of(history)), default=0.0)
    under_way_s = until_s - started[-1].triggered_s
    if under_way_s <= LONG * longest:
        return ""
    return (
        f"{started[-1].where} had been in progress for {under_way_s:.1f} s and was not committed, "
        f"and the longest of the others took {longest:.1f} s"
    )


def _levels(graph: JobGraph, loads: Mapping[str, VertexLoad]) -> dict[str, str]:
    return {graph.names[vertex]: str(load) for vertex, load in loads.items()}


def _unproven(graph: JobGraph, loads: Mapping[str, VertexLoad], ratio: float) -> str:
    worst, load = max(loads.items(), key=lambda each: each[1].pressed.max)
    return (
        f"no back-pressure is proven: {graph.names[worst]} had the most, {load.pressed.max:.2f} "
        f"of its time, and more than {ratio:g} is needed, with a consumer to wait for"
    )


def _message(root: BackpressureSource, graph: JobGraph) -> str:
    names = " or ".join(graph.names[vertex] for vertex in root.vertices)
    if root.is_link:
        return f"link into {names}" if names else "a link between tasks"
    return names


def _counts(graph: JobGraph, loads: Mapping[str, VertexLoad]) -> dict[str, int | float | None]:
    """The least number of samples of a vertex, then each vertex's share of back-pressured time."""
    return {
        "samples": min((load.pressed.samples for load in loads.values()), default=0),
        **{
            f"{graph.names[vertex]}.back_pressured": round(load.pressed.max, 3)
            for vertex, load in loads.items()
        },
    }


def _of_root(root: BackpressureSource, loads: Mapping[str, VertexLoad]) -> dict[str, float | None]:
    """Figures of the root vertex, or of the vertex behind the root link."""
    load = loads[root.vertices[0]]
    busy, pool = load.busy, load.pool
    return {
        "root_busy": None if busy is None else round(busy, 3),
        "root_input_pool": None if pool is None else round(pool, 3),
        "root_is_link": int(root.is_link),
    }
