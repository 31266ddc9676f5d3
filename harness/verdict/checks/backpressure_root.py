"""`backpressure_root`: the back-pressure leads to what made the job slow.

Of a job with operators it is followed through their graph. Micro-batches have parts in place of
vertices, and the root is the part that takes longer than before the fault by most of what whole
batches do (`evidence/batch_parts.py`).
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
    parts_of,
    seen,
    slowest,
)
from streamquake.harness.verdict.evidence.bottleneck import (
    BackpressureSource,
    JobGraph,
    VertexLoad,
    load_of,
    root_of,
    unsampled,
)
from streamquake.harness.verdict.evidence.checkpoints import batches_of, checkpoints_of
from streamquake.harness.verdict.evidence.pressure import HIGH_ABOVE, Series, max_at_most
from streamquake.harness.verdict.evidence.slowdown_cause import (
    SLOWING,
    SlowdownCause,
    part_slowed,
    slowed_as_injected,
    slowed_by,
)
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, last_attempt
from streamquake.reports.record.fault_events import FaultHealed, FaultInEffect, HealCalled
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.metrics import by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import PhaseBegan, WorkloadDone

LEAST_SAMPLES = 5
SETTLE_S = 8.0
"""Buffers fill before any task waits, and a task's time is reported up to five seconds late."""
NONE = "none"
LONG = 2.0
"""A batch under way for more than so many times the longest may have fallen behind the load."""


@dataclass(frozen=True, kw_only=True)
class JudgedWindow:
    """The time judged, and the step whose effect it is, if any."""

    injected_at_s: float
    end_s: float
    attempt: StepAttempt | None = None

    @property
    def start_s(self) -> float:
        """When the effect shows in samples."""
        return self.injected_at_s + (SETTLE_S if self.attempt else 0.0)


@checks.register
class BackpressureRoot(Check):
    """Held when the root of the back-pressure, by the samples, is where the job was made slow."""

    name: ClassVar[str] = "backpressure_root"
    classes: ClassVar[tuple[str, ...]] = ("back-pressured", "another root")

    expect: Annotated[str, Field(min_length=1)] | None = None
    """Text in the name of the vertex, or of the batch's part, that shall be the root; `link`, or
    `link into TEXT`, when a link shall be; `none` when nothing shall be back-pressured. Without it,
    where the fault put the slowness."""
    fault: str | None = None
    """The fault whose effect is judged. Without it, the first that makes a job slow; in a run
    without one, all of the run until a fault is called."""
    min_ratio: Annotated[float, Field(gt=0, lt=1)] = HIGH_ABOVE
    """Share of its time above which a vertex counts as back-pressured. Of micro-batches one that
    fell behind the load is needed."""

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
            return self._of_batches(case, seen(batches, window.injected_at_s, window.end_s), window)
        series = by_series(read_metrics(case.metrics))
        loads = {
            vertex: load
            for vertex, name in graph.names.items()
            if (load := load_of(series, name, window.start_s, window.end_s)) is not None
        }
        counts = _counts(graph, loads)
        if few := sorted(unsampled(graph, loads, LEAST_SAMPLES)):
            return self.undecided(
                f"fewer than {LEAST_SAMPLES} samples of {few[0]} from {window.start_s:.1f} s to "
                f"{window.end_s:.1f} s",
                (),
                **counts,
            )
        if self.expect == NONE:
            return self._none_judged(graph, loads, series, window, counts)
        return self._judged(case, graph, loads, window, counts)

    def _none_judged(
        self,
        graph: JobGraph,
        loads: Mapping[str, VertexLoad],
        series: Series,
        window: JudgedWindow,
        counts: Mapping[str, Any],
    ) -> CheckResult:
        """That no vertex was back-pressured, nor may have been while nothing was sampled."""
        high = self._high(loads)
        counts = {**counts, "high": len(high)}
        if high:
            finding = Finding(
                what="back-pressured", where=graph.names[high[0]], detail=_levels(graph, loads)
            )
            return self.violated(f"{finding.where} was back-pressured", (finding,), **counts)
        for vertex in loads:
            name = graph.names[vertex]
            ratio = max_at_most(series, name, window.start_s, window.end_s)
            if ratio > self.min_ratio:
                message = f"{name} may have been back-pressured for {ratio:.2f} of its time"
                return self.undecided(f"{message}, since samples are missing", (), **counts)
        return self.held("no vertex was back-pressured, as expected", **counts)

    def _judged(
        self,
        case: JudgedRun,
        graph: JobGraph,
        loads: Mapping[str, VertexLoad],
        window: JudgedWindow,
        counts: Mapping[str, Any],
    ) -> CheckResult:
        high = self._high(loads)
        counts = {**counts, "high": len(high)}
        root = root_of(graph, loads, high)
        if root is None:
            return self.undecided(_unproven(graph, loads, self.min_ratio), **counts)
        if root.is_link and any(loads[vertex].pool is None for vertex in root.vertices):
            return self.undecided("how full the input buffers were was not sampled", **counts)
        named = _message(root, graph)
        expected = self._expected(case, graph, window)
        if expected is None:
            return self.undecided(f"the root is {named}; {self._unknown('vertex')}", **counts)
        counts = {**counts, **_of_root(root, loads)}
        if expected.agrees(root):
            return self.held(f"the root is {named}, where the job was made slow", **counts)
        wanted = _message(
            BackpressureSource(vertices=expected.vertices, is_link=expected.is_link), graph
        )
        finding = Finding(
            what="another root", where=named, detail={"slow was": wanted, **_levels(graph, loads)}
        )
        message = f"the root is {named}, and slow was {wanted}"
        return self.violated(message, (finding,), **counts)

    def _high(self, loads: Mapping[str, VertexLoad]) -> list[str]:
        return [vertex for vertex, load in loads.items() if load.pressed.max > self.min_ratio]

    def _of_batches(self, case: JudgedRun, seen: BatchWindow, window: JudgedWindow) -> CheckResult:
        counts: dict[str, Any] = {"batches": len(seen.during), "fell_behind": len(seen.fell_behind)}
        if self.expect == NONE and seen.during:
            if not seen.fell_behind:
                if why := _under_way(case.history, window.end_s):
                    return self.undecided(why, **counts)
                return self.held("no batch fell behind the load, as expected", **counts)
            where = f"batch {seen.fell_behind[0].number}"
            finding = Finding(what="back-pressured", where=where, detail=counts)
            return self.violated(f"{where} fell behind the load", (finding,), **counts)
        if seen.uncertainty:
            return self.undecided(seen.uncertainty, **counts)
        usual, during = (
            [parts_of(batch, attempts_of(batch, case.history)) for batch in batches]
            for batches in (seen.usual, seen.during)
        )
        found = slowest(usual, during)
        if found is None or not found.proven:
            return self.undecided("no part took most of what the batches took longer", **counts)
        counts["root_longer_ms"] = round(found.longer_ms)
        return self._part_judged(case, window, found, counts)

    def _part_judged(
        self, case: JudgedRun, window: JudgedWindow, found: SlowestPart, counts: Mapping[str, Any]
    ) -> CheckResult:
        longer: Mapping[str, Any] = {
            f"{part}.longer_ms": round(spent) for part, spent in found.longer.items()
        }
        named = f"the root is the part {found.part}"
        word = self.expect or (
            part_slowed(window.attempt, case.experiment) if window.attempt else None
        )
        slow = [part for part in found.longer if word is not None and word in part]
        if not 0 < len(slow) < len(found.longer):
            return self.undecided(f"{named}; {self._unknown('part')}", **counts, **longer)
        if found.part in slow:
            message = f"{named}, {found.longer_ms:,.0f} ms longer than before"
            return self.held(message, **counts, **longer)
        detail = {"slow was": slow[0], **longer}
        finding = Finding(what="another root", where=found.part, detail=detail)
        message = f"{named}, and slow was {slow[0]}"
        return self.violated(message, (finding,), **counts, **longer)

    def _expected(
        self, case: JudgedRun, graph: JobGraph, window: JudgedWindow
    ) -> SlowdownCause | None:
        if self.expect is not None:
            return slowed_as_injected(self.expect, graph)
        return slowed_by(window.attempt, case.experiment, graph) if window.attempt else None

    def _unknown(self, kind: str) -> str:
        if self.expect is not None:
            return f"\"{self.expect}\" is in no {kind}'s name, or in every one's"
        return "where the job was made slow is not known; name it with `expect`"


def _window(history: History, fault: str | None) -> JudgedWindow | str:
    """The time to judge, or why there is none."""
    injected = history.of(FaultInEffect)
    names = SLOWING if fault is None else (fault,)
    first = next((event for event in injected if event.fault in names), None)
    if first is None and fault is not None:
        return f"{fault} was not in effect"
    if first is None:
        return _undisturbed(history, injected[0].at_s if injected else None)
    attempt = last_attempt(history, first.step)
    if (effect := attempt.get(FaultInEffect)) is None:
        return f"the last try of {first.fault} was not in effect"
    ended = attempt.get(HealCalled) or attempt.get(FaultHealed) or history[-1]
    return JudgedWindow(injected_at_s=effect.seen_ns / 1e9, end_s=ended.at_s, attempt=attempt)


def _undisturbed(history: History, injected_at_s: float | None) -> JudgedWindow | str:
    """From steady state on, to the end of the load or to the first fault."""
    phases = {event.phase: event.at_s for event in history.of(PhaseBegan)}
    if "disturb" not in phases:
        return "the run did not come to its steady state"
    ended = history.first(WorkloadDone) or history[-1]
    return JudgedWindow(
        injected_at_s=phases["disturb"],
        end_s=min(injected_at_s or ended.at_s, ended.at_s),
    )


def _under_way(history: History, until_s: float) -> str:
    """That the newest batch, of which no end is recorded, had been under way for long; nothing
    where it had not."""
    started = [each for each in checkpoints_of(history) if each.micro_batch]
    if not started or started[-1].ended_s is not None:
        return ""
    longest = max((each.took_ms / 1000 for each in batches_of(history)), default=0.0)
    under_way_s = until_s - started[-1].triggered_s
    if under_way_s <= LONG * longest:
        return ""
    return (
        f"{started[-1].where} had been under way for {under_way_s:.1f} s and was not committed, "
        f"and the longest of the others took {longest:.1f} s"
    )


def _levels(graph: JobGraph, loads: Mapping[str, VertexLoad]) -> dict[str, str]:
    return {graph.names[vertex]: str(load) for vertex, load in loads.items()}


def _unproven(graph: JobGraph, loads: Mapping[str, VertexLoad], ratio: float) -> str:
    worst, load = max(loads.items(), key=lambda each: each[1].pressed.max)
    return (
        f"no back-pressure is proven: the most had {graph.names[worst]}, {load.pressed.max:.2f} "
        f"of its time, and more than {ratio:g} is needed, with a consumer to wait for"
    )


def _message(root: BackpressureSource, graph: JobGraph) -> str:
    names = " or ".join(graph.names[vertex] for vertex in root.vertices)
    if root.is_link:
        return f"link into {names}" if names else "a link between tasks"
    return names


def _counts(graph: JobGraph, loads: Mapping[str, VertexLoad]) -> dict[str, int | float | None]:
    """Shares of time, from the least sampled vertex's number of samples on."""
    return {
        "samples": min((load.pressed.samples for load in loads.values()), default=0),
        **{
            f"{graph.names[vertex]}.back_pressured": round(load.pressed.max, 3)
            for vertex, load in loads.items()
        },
    }


def _of_root(root: BackpressureSource, loads: Mapping[str, VertexLoad]) -> dict[str, float | None]:
    """Of the vertex, or of the one behind the link."""
    load = loads[root.vertices[0]]
    busy, pool = load.busy, load.pool
    return {
        "root_busy": None if busy is None else round(busy, 3),
        "root_input_pool": None if pool is None else round(pool, 3),
        "root_is_link": int(root.is_link),
    }
