"""`checkpoints`: whether checkpoints come through, in which way and how soon, under back-pressure.

Only checkpoints taken while samples prove back-pressure are judged: without it every kind of
checkpoint passes, and a job that passes has shown nothing. Failures that are not the checkpoint's
own (tasks that were not running yet or any more) and checkpoints still in progress are set aside.

A micro-batch is a checkpoint too, from its offsets in the log to its commit there. Back-pressure is
proven of one that fell behind the load (`evidence/batches.py`); its own failure is the end of its
query over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence import checkpoint_findings as wrong
from streamquake.harness.verdict.evidence.batch_figures import batch_figures, batches_text
from streamquake.harness.verdict.evidence.batches import GROWN, behind
from streamquake.harness.verdict.evidence.checkpoint_ends import without_end
from streamquake.harness.verdict.evidence.checkpoint_figures import (
    durations_text,
    figures,
    slowest_of,
)
from streamquake.harness.verdict.evidence.checkpoint_loop import loops_of, tolerable_restarts
from streamquake.harness.verdict.evidence.checkpoints import COUNTED, Checkpoint, checkpoints_of
from streamquake.harness.verdict.evidence.pressure import worst_at_most, worst_vertex
from streamquake.reports.record.fault_windows import FaultWindow, acted_windows
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.metrics import by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import LONGEST_S, Share

Milliseconds = Annotated[float, Field(gt=0, le=LONGEST_S * 1000, allow_inf_nan=False)]
EXAMPLES = 2
"""Findings of one class; more say nothing more, and would hide other classes."""


@dataclass(frozen=True, kw_only=True)
class PressedCheckpoint:
    """A checkpoint, and how hard the hardest pressed vertex was pressed while it was taken: 1 for a
    micro-batch that fell behind, 0 for one that did not."""

    checkpoint: Checkpoint
    ratio: float
    vertex: str
    timeout_ms: int | None
    """How long it stays aligned before it is switched; None where that is not recorded."""
    at_most: float
    """What its ratio may be, as far as samples are missing."""
    lost: bool
    """Whether its end should have been seen, and was not recorded."""

    @property
    def aligned_in_time(self) -> bool:
        """Whether its last barrier had come before it would have been switched, so that it had no
        need to be. Where not all parts are recorded, whether it was over by then: writing the state
        may take longer than the barriers."""
        last, took_ms = self.checkpoint.last_barrier, self.checkpoint.duration_ms
        if last is not None and len(self.checkpoint.parts or ()) == self.checkpoint.subtasks:
            took_ms = last.barriers_ms
        return took_ms is not None and took_ms <= (self.timeout_ms or -1)


@checks.register
class Checkpoints(Check):
    """Held when enough checkpoints complete under proven back-pressure, and as it is asked for."""

    name: ClassVar[str] = "checkpoints"
    classes: ClassVar[tuple[str, ...]] = (
        *COUNTED.values(),
        "query ended",
        "failed",
        "aligned",
        "unaligned",
        "in-flight bytes persisted",
        "no in-flight bytes persisted",
        "too slow",
        "switched late",
        "not switched",
        "too many files",
        "tolerable-failures loop",
        "one batch fails again and again",
    )

    under_pressure: bool = True
    """Judge only checkpoints under proven back-pressure; false judges all of the run."""
    pressure_ratio: Share = 0.5
    """The share of its time that a vertex must spend back-pressured while a checkpoint is taken."""
    fault: str | None = None
    """Judge only checkpoints that began and ended while this fault was in effect."""
    min_checkpoints: Annotated[int, Field(ge=1)] = 3
    """With fewer that completed or failed nothing is proven."""
    completed_share: Share = 0.95
    """How many of those that completed or failed must have completed."""
    type: Literal["aligned", "unaligned"] | None = None
    """How every completed one must have been taken, by the type that is reported. One that aligned
    before its time to switch had come need not be unaligned."""
    typed_share: Share = 1.0
    """How many of the completed ones must be as `type` and `persisted` ask."""
    within_ms: Milliseconds | None = None
    """The longest that the median of the completed ones may take."""
    persisted: bool | None = None
    """Whether every completed one must, or must not, hold bytes that were in flight."""
    switch_within_ms: Milliseconds | None = None
    """How long after the aligned checkpoint's time-out the last barrier may reach a subtask."""
    files_at_most: Annotated[int, Field(ge=1)] | None = None
    """Files in the folder of a completed checkpoint."""
    tolerate_loop: bool = False
    """Whether a job may be set back to one checkpoint again and again by failed checkpoints."""

    def check(self, case: JudgedRun) -> CheckResult:
        of_run = taken = _taken(case)
        if self.fault is not None:
            windows = [w for w in acted_windows(case.history) if w.fault == self.fault]
            if not windows:
                return self.undecided(f"{self.fault} was not in effect")
            taken = [each for each in of_run if _taken_in(each, windows)]
        judged = [each for each in taken if self._judges(each)]
        counts = {
            **figures([each.checkpoint for each in judged]),
            **batch_figures([b for each in judged if (b := each.checkpoint.batch) is not None]),
            "switch_ms": _switch_ms(judged),
            "pressure_ratio": sum(e.ratio for e in judged) / len(judged) if judged else None,
            "taken_in_run": len(of_run),
            "restarts_over_failures": tolerable_restarts(case.history),
        }
        ended = [each for each in judged if _counts(each.checkpoint)]
        findings = tuple(self._findings(case, ended))
        if findings:
            return self.violated(self._message(ended, findings), findings, **counts)
        if problems := list(self._uncertainties(taken, ended)):
            return self.undecided("; ".join(problems), (), **counts)
        return self.held(self._message(ended), **counts)

    def _judges(self, taken: PressedCheckpoint) -> bool:
        return not self.under_pressure or taken.ratio >= self.pressure_ratio

    def _findings(self, case: JudgedRun, ended: Sequence[PressedCheckpoint]) -> Iterator[Finding]:
        """A loop is one whatever else was seen; too few checkpoints say nothing."""
        if not self.tolerate_loop:
            yield from (wrong.looped(loop) for loop in loops_of(case.history))
        if len(ended) < self.min_checkpoints:
            return
        done = [each for each in ended if each.checkpoint.completed]
        if len(done) / len(ended) < self.completed_share:
            failed = (each.checkpoint for each in ended if not each.checkpoint.completed)
            yield from islice((wrong.failed(each) for each in failed), EXAMPLES)
        for requested, rule in self._rules(done):
            if requested is not None:
                yield from islice((finding for finding in rule if finding), EXAMPLES)

    def _rules(
        self, done: Sequence[PressedCheckpoint]
    ) -> Iterator[tuple[Any, Iterator[Finding | None]]]:
        """(what is asked for, what each completed checkpoint says to it)."""
        plain = [each.checkpoint for each in done]
        typed = self._typed(done)
        unaligned = self.type == "unaligned"
        yield self.type, self._if_many(wrong.wrong_type(e, unaligned=unaligned) for e in typed)
        wanted = bool(self.persisted)
        yield (
            self.persisted,
            self._if_many(wrong.wrongly_persisted(each, wanted=wanted) for each in typed),
        )
        yield self.within_ms, self._too_slow(plain)
        within_ms = self.switch_within_ms or 0.0
        yield (
            self.switch_within_ms,
            (
                wrong.switched_late(each.checkpoint, each.timeout_ms, within_ms)
                for each in done
                if each.timeout_ms
            ),
        )
        at_most = self.files_at_most or 0
        yield self.files_at_most, (wrong.too_many_files(each, at_most) for each in plain)

    def _if_many(self, message: Iterable[Finding | None]) -> Iterator[Finding]:
        """The findings, where too many of the checkpoints have one."""
        recorded = list(message)
        found = [finding for finding in recorded if finding is not None]
        # Divided as `completed_share` is: 1 - 0.9 is a little less than a tenth.
        if found and (len(recorded) - len(found)) / len(recorded) < self.typed_share:
            yield from found

    def _typed(self, done: Sequence[PressedCheckpoint]) -> list[Checkpoint]:
        """Those whose type, and whether they hold records in flight, is what is asked about."""
        spared = self.type == "unaligned"
        return [e.checkpoint for e in done if not (spared and e.aligned_in_time)]

    def _too_slow(self, done: Sequence[Checkpoint]) -> Iterator[Finding]:
        median_ms, slowest = figures(done)["median_ms"], slowest_of(done)
        if median_ms is not None and slowest is not None and median_ms > (self.within_ms or 0):
            yield wrong.too_slow(slowest, median_ms)

    def _uncertainties(
        self, taken: Sequence[PressedCheckpoint], ended: Sequence[PressedCheckpoint]
    ) -> Iterator[str]:
        """What cannot be judged for want of evidence."""
        yield from (
            f"{each.checkpoint.where} is recorded both to have completed and to have failed"
            for each in taken
            if each.checkpoint.contradicted
        )
        if len(ended) < self.min_checkpoints:
            yield self._too_few(taken, len(ended))
            return
        done = [each for each in ended if each.checkpoint.completed]
        plain = [each.checkpoint for each in done]
        unsure = [(each, why) for each in taken if (why := self._unsure(each))]
        if unsure and len(done) / (of := len(ended) + len(unsure)) < self.completed_share:
            first, why = unsure[0]
            yield (
                f"{first.checkpoint.where} {why}, and with such ones counted as failed {len(done)} "
                f"of {of} completed"
            )
        if few := [each for each in plain if each.unacknowledged]:
            yield (
                f"{few[0].where} is called completed, and {few[0].unacknowledged} of its subtasks "
                "are not recorded to have acknowledged it"
            )
        if (self.type, self.persisted) != (None, None) and any(e.micro_batch for e in plain):
            yield "micro-batches are neither aligned nor unaligned, and hold nothing in flight"
            return
        if self.type is not None and not self._typed(done):
            yield "every checkpoint aligned before the time at which it would have been switched"
        if self.type is not None and any(each.kind is None for each in plain):
            yield "the type of a completed checkpoint is not recorded"
        if self.persisted is not None and any(each.persisted_bytes is None for each in plain):
            yield "how many bytes in flight a completed checkpoint holds is not recorded"
        if self.persisted is not None and (odd := [each for each in plain if each.parts_kept_more]):
            where = odd[0].where
            yield f"{where} is recorded to hold no bytes in flight, and its subtasks hold some"
        if self.within_ms is not None and any(each.duration_ms is None for each in plain):
            yield "how long a completed checkpoint took is not recorded"
        if self.switch_within_ms is not None and _switch_ms(done) is None:
            yield "no checkpoint was seen to be switched from aligned to unaligned at a time-out"
        listed = sum(each.files is not None for each in plain)
        if self.files_at_most is not None and listed < self.min_checkpoints:
            yield (
                f"the files of {listed} completed checkpoints were listed, and at least "
                f"{self.min_checkpoints} listings are needed"
            )

    def _unsure(self, taken: PressedCheckpoint) -> str:
        """Why it may have to be counted as failed; nothing where that is known."""
        each = taken.checkpoint
        if taken.lost:
            return "was triggered, and its end was not recorded"
        hidden = taken.ratio < self.pressure_ratio <= taken.at_most
        if each.failed_somehow and (self._judges(taken) or hidden):
            return "failed, and of what was not recorded"
        if self.under_pressure and each.failed_how and hidden:
            return "failed, and whether it was under back-pressure was not sampled"
        return ""

    def _too_few(self, taken: Sequence[PressedCheckpoint], ended: int) -> str:
        if not taken:
            return "no checkpoint was triggered"
        needed = f"at least {self.min_checkpoints} are needed to prove anything"
        if not self.under_pressure:
            return f"{ended} of {len(taken)} checkpoints completed or failed, and {needed}"
        return (
            f"{ended} of {len(taken)} checkpoints completed or failed under proven back-pressure, "
            f"and {needed}; {self._most_pressed(taken)}"
        )

    def _most_pressed(self, taken: Sequence[PressedCheckpoint]) -> str:
        if any(each.checkpoint.micro_batch for each in taken):
            return (
                f"{sum(each.ratio > 0 for each in taken)} micro-batches fell behind, each begun at "
                f"once after the one before, with more and more records waiting until there were "
                f"{GROWN:g} times as many; disturb longer, or send more"
            )
        hardest = max(taken, key=lambda each: each.ratio)
        seen = f", in {hardest.vertex}" if hardest.vertex else ""
        return (
            f"the most that was seen is a ratio of {hardest.ratio:.2f}{seen}, and "
            f"{self.pressure_ratio:g} is asked for"
        )

    def _message(self, ended: Sequence[PressedCheckpoint], findings: Sequence[Finding] = ()) -> str:
        """What is wrong, if anything; what came of the checkpoints, how long they took, where."""
        done = [each.checkpoint for each in ended if each.checkpoint.completed]
        pressed = " under back-pressure" if self.under_pressure else ""
        parts = (
            ", ".join(f"{finding.what} ({finding.where})" for finding in findings),
            f"{len(done)} of {len(ended)} checkpoints completed{pressed}",
            durations_text(done),
            batches_text([each.batch for each in done if each.batch is not None]),
        )
        return "; ".join(part for part in parts if part)


def _taken(case: JudgedRun) -> list[PressedCheckpoint]:
    """Every checkpoint that is no savepoint, with the pressure over its own time."""
    series = by_series(read_metrics(case.metrics))
    over_s = max((event.at_s for event in case.history), default=0.0)
    timeouts = _aligned_timeouts(case)
    found, checkpoints = [], checkpoints_of(case.history)
    lost = without_end(case.history, checkpoints)
    late = behind([each.batch for each in checkpoints if each.batch is not None])
    fell: list[bool] = []
    for each in checkpoints:
        ended_s = over_s if each.ended_s is None else each.ended_s
        worst = worst_vertex(series, each.triggered_s, ended_s)
        vertex, ratio = (worst[0], worst[1].max) if worst else ("", 0.0)
        at_most = worst_at_most(series, each.triggered_s, ended_s)
        if each.micro_batch:
            if each.batch is not None:
                fell.append(each.batch in late)
            # What waited for one that was not committed is not recorded, so that nothing is known
            # of the one before it either: the one before that shows it.
            vertex, ratio = "", float(fell[-1] if each.batch is not None else any(fell[-2:]))
            at_most = ratio
        timeout_ms = timeouts.get(each.job)
        if not each.savepoint:
            found.append(
                PressedCheckpoint(
                    checkpoint=each,
                    ratio=ratio,
                    vertex=vertex,
                    timeout_ms=timeout_ms,
                    at_most=at_most,
                    lost=each in lost,
                )
            )
    return found


def _counts(checkpoint: Checkpoint) -> bool:
    """Whether it completed or failed, and not both."""
    ended = checkpoint.completed or checkpoint.failed_how is not None
    return ended and not checkpoint.contradicted


def _taken_in(taken: PressedCheckpoint, windows: Iterable[FaultWindow]) -> bool:
    """One that is in progress when the fault is healed shows neither the one nor the other; of one
    whose end was not recorded its trigger alone is known."""
    checkpoint = taken.checkpoint
    ended_s = checkpoint.triggered_s if taken.lost else checkpoint.ended_s
    return ended_s is not None and any(
        (window.in_effect_s or 0.0) <= checkpoint.triggered_s
        and (window.acted_until_s is None or ended_s <= window.acted_until_s)
        for window in windows
    )


def _aligned_timeouts(case: JudgedRun) -> dict[Any, int]:
    """Job -> how long its checkpoints stay aligned before they are switched, in milliseconds."""
    recorded = {
        event.job: (event.config or {}).get("aligned_checkpoint_timeout")
        for event in case.history.of(JobSubmitted)
    }
    return {job: int(timeout_ms) for job, timeout_ms in recorded.items() if timeout_ms is not None}


def _switch_ms(taken: Iterable[PressedCheckpoint]) -> float | None:
    """The median time from the time-out of aligned checkpoints until the last barrier had come,
    over those that were switched; None where none was seen to be."""
    late = [
        last.barriers_ms - each.timeout_ms
        for each in taken
        if each.timeout_ms
        and each.checkpoint.completed
        and each.checkpoint.unaligned
        and (last := each.checkpoint.last_barrier) is not None
    ]
    return median(late) if late else None
