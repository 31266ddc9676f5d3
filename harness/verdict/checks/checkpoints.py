"""`checkpoints`: whether checkpoints complete under back-pressure, of which type and how fast.

Only checkpoints taken while samples prove back-pressure are judged: without it every kind of
checkpoint passes, which proves nothing. Failures that the checkpoint did not cause (of tasks that
did not run) and checkpoints still in progress are set aside.

A micro-batch is a checkpoint too, from its entry in the offset log to its entry in the commit log.
One that fell behind the load proves back-pressure (`evidence/batches.py`); it fails when its query
ends over it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence import checkpoint_findings as wrong
from streamquake.harness.verdict.evidence.batch_figures import batch_figures, batches_text
from streamquake.harness.verdict.evidence.batches import GROWN, batches_behind
from streamquake.harness.verdict.evidence.checkpoint_ends import checkpoints_without_end
from streamquake.harness.verdict.evidence.checkpoint_figures import (
    PHASE_NAMES,
    checkpoint_figures,
    durations_text,
    slowest_checkpoint,
)
from streamquake.harness.verdict.evidence.checkpoint_loop import (
    restart_loops_of,
    tolerable_restarts,
)
from streamquake.harness.verdict.evidence.checkpoints import (
    FAILURE_KINDS,
    Checkpoint,
    checkpoints_of,
)
from streamquake.harness.verdict.evidence.pressure import worst_upper_bound, worst_vertex
from streamquake.harness.verdict.evidence.submitted_jobs import SubmittedJobs
from streamquake.reports.record.fault_windows import FaultWindow, acted_windows
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.metrics import by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import LONGEST_S, Share

Milliseconds = Annotated[float, Field(gt=0, le=LONGEST_S * 1000, allow_inf_nan=False)]
EXAMPLES = 2
"""The most findings of one class: more would add nothing and hide other classes."""


@dataclass(frozen=True, kw_only=True)
class PressedCheckpoint:
    """A checkpoint, and the back-pressure ratio of the worst vertex while it was taken, as far as
    samples prove it: 1 for a micro-batch that fell behind, 0 for one that did not."""

    checkpoint: Checkpoint
    ratio: float
    vertex: str
    timeout_ms: int | None
    """How long it stays aligned before it switches to unaligned; None where that is not
    recorded."""
    switched_by_ms: float
    """The shortest time by which a checkpoint of its job had switched; infinite where none did. The
    time-out is not longer."""
    at_most: float
    """The upper bound of its ratio where samples are missing."""
    unended: bool
    """Whether its end is missing in the record, although it should have ended."""
    known_job: bool = True
    """Whether its job is one of those that were submitted; also true where none is recorded."""
    in_fault: bool = True
    """Whether the requested fault is known to have acted until its end; false where it may have
    ended early before."""

    @property
    def aligned_in_time(self) -> bool:
        """Whether its last barrier arrived before the time-out, so that it did not have to
        switch."""
        at_most_ms = self.checkpoint.barriers_at_most_ms
        return at_most_ms is not None and at_most_ms <= (self.timeout_ms or -1)

    @property
    def may_be_aligned_in_time(self) -> bool:
        """Whether some time-out would have allowed it to be aligned, where none is recorded."""
        last = self.checkpoint.last_barrier
        at_least_ms = 0 if last is None else last.barriers_ms
        aligned = not self.checkpoint.unaligned
        return self.timeout_ms is None and aligned and at_least_ms <= self.switched_by_ms

    def may_be_late(self, within_ms: float) -> bool:
        """Whether its last barrier may have arrived longer than that after the time-out."""
        at_most_ms = self.checkpoint.barriers_at_most_ms
        if self.timeout_ms == 0:
            return False  # it began unaligned, so it never had to switch
        return at_most_ms is None or at_most_ms > (self.timeout_ms or 0) + within_ms


LISTED_SHARE = 0.5
"""At least so many of the completed checkpoints must have their files listed."""


@checks.register
class Checkpoints(Check):
    """Held when enough checkpoints complete under proven back-pressure, and meet the
    requirements."""

    name: ClassVar[str] = "checkpoints"
    classes: ClassVar[tuple[str, ...]] = (
        *FAILURE_KINDS.values(),
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
    """With fewer completed or failed checkpoints nothing is proven."""
    completed_share: Share = 0.95
    """The share of completed checkpoints, of those that completed or failed, that is required."""
    type: Literal["aligned", "unaligned"] | None = None
    """The required type of every completed checkpoint, by the reported type. One that aligned
    before its time-out need not be unaligned."""
    typed_share: Share = 1.0
    """The share of the completed checkpoints that must meet `type` and `persisted`."""
    within_ms: Milliseconds | None = None
    """The longest allowed median duration of the completed checkpoints."""
    persisted: bool | None = None
    """Whether every completed checkpoint must, or must not, hold in-flight bytes."""
    switch_within_ms: Milliseconds | None = None
    """How long after the aligned checkpoint's time-out the last barrier may reach a subtask. Where
    not all subtasks of a checkpoint are recorded, its whole duration must not be longer. Of one or
    more that switched, all of them must be."""
    files_at_most: Annotated[int, Field(ge=1)] | None = None
    """The most files in the folder of a completed checkpoint."""
    tolerate_loop: bool = False
    """Whether a job may be set back to one checkpoint again and again by failed checkpoints."""

    def check(self, case: JudgedRun) -> CheckResult:
        of_run = taken = _checkpoints_of_run(case)
        if self.fault is not None:
            windows = [w for w in acted_windows(case.history) if w.fault == self.fault]
            if not windows:
                return self.undecided(f"{self.fault} was not in effect")
            taken = _taken_in(windows, of_run)
        judged = [each for each in taken if self._is_judged(each)]
        counts = {
            **checkpoint_figures([each.checkpoint for each in judged]),
            **batch_figures([b for each in judged if (b := each.checkpoint.batch) is not None]),
            "switch_ms": _switch_ms(judged),
            "pressure_ratio": sum(e.ratio for e in judged) / len(judged) if judged else None,
            "taken_in_run": len(of_run),
            "restarts_over_failures": tolerable_restarts(case.history),
        }
        ended = [each for each in judged if _has_ended(each.checkpoint)]
        findings = tuple(self._findings(case, ended))
        if findings:
            return self.violated(self._message(ended, findings), findings, **counts)
        if problems := list(self._uncertainties(taken, ended)):
            return self.undecided("; ".join(problems), (), **counts)
        return self.held(self._message(ended), **counts)

    def _is_judged(self, taken: PressedCheckpoint) -> bool:
        return taken.in_fault and self._is_pressed(taken)

    def _is_pressed(self, taken: PressedCheckpoint) -> bool:
        return not self.under_pressure or taken.ratio >= self.pressure_ratio

    def _findings(self, case: JudgedRun, ended: Sequence[PressedCheckpoint]) -> Iterator[Finding]:
        """A restart loop is always a finding; too few checkpoints prove nothing else."""
        if not self.tolerate_loop:
            yield from (wrong.restart_loop(loop) for loop in restart_loops_of(case.history))
        if len(ended) < self.min_checkpoints:
            return
        done = [each for each in ended if each.checkpoint.completed]
        if len(done) / len(ended) < self.completed_share:
            failed = (each.checkpoint for each in ended if not each.checkpoint.completed)
            yield from _examples(wrong.failed(each) for each in failed)
        for requested, rule in self._rules(done):
            if requested is not None:
                yield from _examples(finding for finding in rule if finding)

    def _rules(
        self, done: Sequence[PressedCheckpoint]
    ) -> Iterator[tuple[Any, Iterator[Finding | None]]]:
        """(requirement, the findings of the completed checkpoints, None for one that meets it)."""
        plain = [each.checkpoint for each in done]
        yield from self._type_rules(self._with_type(done))
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

    def _type_rules(
        self, typed: Sequence[Checkpoint]
    ) -> Iterator[tuple[Any, Iterator[Finding | None]]]:
        """The rules of `_rules` about the type and what goes with it."""
        unaligned = self.type == "unaligned"
        yield self.type, self._if_many(wrong.wrong_type(e, unaligned=unaligned) for e in typed)
        wanted = bool(self.persisted)
        yield (
            self.persisted,
            self._if_many(wrong.wrongly_persisted(each, wanted=wanted) for each in typed),
        )

    def _if_many(self, findings: Iterable[Finding | None]) -> Iterator[Finding]:
        """The findings, if fewer checkpoints than `typed_share` are without one."""
        recorded = list(findings)
        found = [finding for finding in recorded if finding is not None]
        # The same division as for `completed_share`: in floats, 1 - 0.9 is less than 0.1.
        if found and (len(recorded) - len(found)) / len(recorded) < self.typed_share:
            yield from found

    def _with_type(
        self, done: Sequence[PressedCheckpoint], *, doubtful: bool = False
    ) -> list[Checkpoint]:
        """The checkpoints to which `type` and `persisted` apply; with the `doubtful` ones, also
        those to which they may apply."""
        return [
            each.checkpoint
            for each in done
            if self.type != "unaligned"
            or not (each.aligned_in_time or (each.may_be_aligned_in_time and not doubtful))
        ]

    def _too_slow(self, done: Sequence[Checkpoint]) -> Iterator[Finding]:
        """The median is too long even if every duration that is not recorded was zero."""
        median_ms, slowest = checkpoint_figures(done)["median_ms"], slowest_checkpoint(done)
        if median_ms is None or slowest is None:
            return
        if median(each.duration_ms or 0.0 for each in done) > (self.within_ms or 0):
            yield wrong.too_slow(slowest, median_ms)

    def _uncertainties(
        self, taken: Sequence[PressedCheckpoint], ended: Sequence[PressedCheckpoint]
    ) -> Iterator[str]:
        """What cannot be judged for lack of evidence."""
        yield from (
            f"{each.checkpoint.where} {contradiction}"
            for each in taken
            if (contradiction := each.checkpoint.contradiction)
        )
        if len(ended) < self.min_checkpoints:
            yield self._too_few(taken, len(ended))
            return
        done = [each for each in ended if each.checkpoint.completed]
        plain = [each.checkpoint for each in done]
        uncertain = [(each, why) for each in taken if (why := self._uncertainty(each))]
        if uncertain and len(done) / (of := len(ended) + len(uncertain)) < self.completed_share:
            first, why = uncertain[0]
            yield (
                f"{first.checkpoint.where} {why}; if such checkpoints count as failed, {len(done)} "
                f"of {of} completed"
            )
        if unknown := [each for each in ended if not each.known_job]:
            yield f"{unknown[0].checkpoint.where} is of a job whose submission is not recorded"
        if incomplete := [each for each in plain if each.unacknowledged]:
            yield (
                f"{incomplete[0].where} is recorded as completed, and acknowledgements of "
                f"{incomplete[0].unacknowledged} of its subtasks are not recorded"
            )
        if (self.type, self.persisted) != (None, None) and any(e.micro_batch for e in plain):
            yield "micro-batches are neither aligned nor unaligned, and hold nothing in flight"
            return
        yield from self._type_uncertainties(done)
        if self.within_ms is not None and any(each.duration_ms is None for each in plain):
            yield "how long a completed checkpoint took is not recorded"
        yield from self._switch_uncertainties(done)
        listings = sum(each.files is not None for each in plain)
        # The folder of a checkpoint with many files may be gone before its listing ends.
        needed = max(self.min_checkpoints, math.ceil(LISTED_SHARE * len(plain)))
        if self.files_at_most is not None and listings < needed:
            yield (
                f"the files of {listings} of {len(plain)} completed checkpoints were listed, and "
                f"at least {needed} listings are needed"
            )

    def _switch_uncertainties(self, done: Sequence[PressedCheckpoint]) -> Iterator[str]:
        """What cannot be judged of the switches at the time-out."""
        if (within_ms := self.switch_within_ms) is None:
            return
        if _switch_ms(done) is None:
            listed = (
                ""
                if all(e.checkpoint.has_all_parts for e in done)
                else ", of those with all their subtasks"
            )
            yield (
                "no checkpoint was seen to switch from aligned to unaligned at a time-out" + listed
            )
        if late := [each for each in done if each.may_be_late(within_ms)]:
            yield f"whether {late[0].checkpoint.where} switched in time is not recorded"
        for phase in ("start_delay_ms", "alignment_ms"):
            longer = (e.checkpoint for e in done if phase in e.checkpoint.longer_phases)
            if (first := next(longer, None)) is not None:
                yield (
                    f"the longest {PHASE_NAMES[phase]} of {first.where} is recorded as "
                    f"{first.longest_ms[phase]:,.0f} ms, and none of its subtasks has it"
                )

    def _type_uncertainties(self, done: Sequence[PressedCheckpoint]) -> Iterator[str]:
        """What cannot be judged of the type and what goes with it."""
        plain = [each.checkpoint for each in done]
        typed = self._with_type(done, doubtful=True)
        if self.type is not None and not typed:
            yield "every checkpoint aligned before the time-out at which it would have switched"
        wanted = (rule for requested, rule in self._type_rules(typed) if requested is not None)
        if (doubt := next(chain.from_iterable(wanted), None)) is not None:
            yield f"the time-out before which {doubt.where} may have aligned is not recorded"
        if self.type is not None:
            yield from _unknown_types(plain)
        if self.persisted is not None and any(each.persisted_bytes is None for each in plain):
            yield "how many in-flight bytes a completed checkpoint holds is not recorded"
        if self.persisted is not None and (
            contradicting := [each for each in plain if each.parts_persisted_otherwise]
        ):
            first = contradicting[0]
            yield (
                f"{first.where} is recorded to hold {first.persisted_bytes:,} in-flight bytes, and "
                f"its subtasks hold {first.parts_persisted_bytes:,}"
            )

    def _uncertainty(self, taken: PressedCheckpoint) -> str:
        """Why it may count as failed; empty where its end is known."""
        each = taken.checkpoint
        if taken.unended:
            return "was triggered, and its end was not recorded"
        hidden = taken.ratio < self.pressure_ratio <= taken.at_most
        if not (self._is_pressed(taken) or hidden):
            return ""
        if each.failed_without_reason:
            return "failed, and the reason was not recorded"
        if not each.failure_kind:
            return ""
        if not taken.in_fault:
            return f"failed, and whether {self.fault} had ended early before is not known"
        if self.under_pressure and hidden:
            return "failed, and whether it was under back-pressure was not sampled"
        return ""

    def _too_few(self, taken: Sequence[PressedCheckpoint], ended: int) -> str:
        if not taken:
            during = f" while {self.fault} was in effect; let it act longer" if self.fault else ""
            return f"no checkpoint was triggered and ended{during}"
        taken = [each for each in taken if each.in_fault]
        if not taken:
            return f"no checkpoint ended before {self.fault} was last seen in effect"
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
        most_pressed = max(taken, key=lambda each: each.ratio)
        where_pressed = f", in {most_pressed.vertex}" if most_pressed.vertex else ""
        return (
            f"the highest ratio is {most_pressed.ratio:.2f}{where_pressed}, and "
            f"{self.pressure_ratio:g} is required"
        )

    def _message(self, ended: Sequence[PressedCheckpoint], findings: Sequence[Finding] = ()) -> str:
        """The findings, if any; the ends of the checkpoints, their durations, the slowest
        subtask."""
        done = [each.checkpoint for each in ended if each.checkpoint.completed]
        pressed = " under back-pressure" if self.under_pressure else ""
        parts = (
            ", ".join(f"{finding.what} ({finding.where})" for finding in findings),
            f"{len(done)} of {len(ended)} checkpoints completed{pressed}",
            durations_text(done),
            batches_text([each.batch for each in done if each.batch is not None]),
        )
        return "; ".join(part for part in parts if part)


def _checkpoints_of_run(case: JudgedRun) -> list[PressedCheckpoint]:
    """Every checkpoint except savepoints, with the back-pressure during it."""
    series = by_series(read_metrics(case.metrics))
    over_s = max((event.at_s for event in case.history), default=0.0)
    found, checkpoints = [], checkpoints_of(case.history)
    timeouts, switched_by = _aligned_timeouts(case), _switched_by(checkpoints)
    unended = checkpoints_without_end(case.history, checkpoints)
    behind = batches_behind([each.batch for each in checkpoints if each.batch is not None])
    jobs = SubmittedJobs(case.history)
    fell_behind: list[bool] = []
    for each in checkpoints:
        ended_s = over_s if each.ended_s is None else each.ended_s
        worst = worst_vertex(series, each.triggered_s, ended_s)
        vertex, ratio = worst or ("", 0.0)
        at_most = worst_upper_bound(series, each.triggered_s, ended_s)
        if each.micro_batch:
            if each.batch is not None:
                fell_behind.append(each.batch in behind)
            # The record has no waiting records for an uncommitted batch, so it is not known whether
            # the batch before it fell behind either: the one before that decides.
            vertex, ratio = (
                "",
                float(fell_behind[-1] if each.batch is not None else any(fell_behind[-2:])),
            )
            at_most = ratio
        timeout_ms = timeouts.get(each.job)
        if not each.savepoint:
            found.append(
                PressedCheckpoint(
                    checkpoint=each,
                    ratio=ratio,
                    vertex=vertex,
                    timeout_ms=timeout_ms,
                    switched_by_ms=switched_by.get(each.job, math.inf),
                    at_most=at_most,
                    unended=each in unended,
                    known_job=jobs.may_include(each.job),
                )
            )
    return found


def _unknown_types(done: Sequence[Checkpoint]) -> Iterator[str]:
    """Why it is not known of completed checkpoints whether they were aligned in every subtask."""
    if any(each.kind is None for each in done):
        yield "the type of a completed checkpoint is not recorded"
    other = (each for each in done if each.kind is not None and not each.of_known_alignment)
    if (odd := next(other, None)) is not None:
        yield f"{odd.where} has the type {odd.kind}, which is neither aligned nor unaligned"
    for each in done:
        if each.parts is not None and len(each.parts) < each.acknowledged:
            yield (
                f"{each.acknowledged} subtasks acknowledged {each.where}, and {len(each.parts)} of "
                "them are listed"
            )
            return


def _has_ended(checkpoint: Checkpoint) -> bool:
    """Whether it completed or failed, without a contradiction."""
    ended = checkpoint.completed or checkpoint.failure_kind is not None
    return ended and not checkpoint.contradiction


def _taken_in(
    windows: Sequence[FaultWindow], of_run: Iterable[PressedCheckpoint]
) -> list[PressedCheckpoint]:
    """The checkpoints that were taken, or may have been taken, while a fault acted."""
    acted = [(window.in_effect_s or 0.0, window.acted_until_s) for window in windows]
    proven = [(window.in_effect_s or 0.0, window.proven_until_s) for window in windows]
    return [
        replace(each, in_fault=_is_within(each, proven))
        for each in of_run
        if _is_within(each, acted)
    ]


def _is_within(taken: PressedCheckpoint, spans: Iterable[tuple[float, float | None]]) -> bool:
    """Whether it was taken in one of the spans, which may be open. One in progress at the end of a
    span does not count; of one without a recorded end only the trigger counts."""
    began_s = taken.checkpoint.began_s
    ended_s = began_s if taken.unended else taken.checkpoint.ended_s
    return ended_s is not None and any(
        from_s <= began_s and (until_s is None or ended_s <= until_s) for from_s, until_s in spans
    )


def _examples(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The first findings of each class."""
    taken = Counter[str]()
    for finding in findings:
        taken[finding.what] += 1
        if taken[finding.what] <= EXAMPLES:
            yield finding


def _aligned_timeouts(case: JudgedRun) -> dict[Any, int]:
    """Job -> how long its checkpoints stay aligned before they switch, in milliseconds."""
    recorded = {
        event.job: (event.config or {}).get("aligned_checkpoint_timeout")
        for event in case.history.of(JobSubmitted)
    }
    return {job: int(timeout_ms) for job, timeout_ms in recorded.items() if timeout_ms is not None}


def _switched_by(checkpoints: Iterable[Checkpoint]) -> dict[Any, float]:
    """Job -> the shortest time by which one of its checkpoints had switched to unaligned, in
    milliseconds: its last barrier arrived after the time-out."""
    found: dict[Any, float] = {}
    for each in checkpoints:
        if each.unaligned and (at_most_ms := each.barriers_at_most_ms) is not None:
            found[each.job] = min(at_most_ms, found.get(each.job, math.inf))
    return found


def _switch_ms(taken: Iterable[PressedCheckpoint]) -> float | None:
    """The median time from the aligned checkpoint's time-out until the last barrier arrived, over
    the checkpoints that switched; None without any of which all subtasks are recorded."""
    behind = [
        last.barriers_ms - each.timeout_ms
        for each in taken
        if each.timeout_ms
        and each.checkpoint.completed
        and each.checkpoint.unaligned
        and each.checkpoint.has_all_parts
        and (last := each.checkpoint.last_barrier) is not None
    ]
    return median(behind) if behind else None
