"""`restore`: a restarted job restores its newest checkpoint, in time.

Restoring an older checkpoint loses nothing by itself, but it processes records again without need
and leaves the sink's transactions of the newer checkpoint open. Flink's own statistics report the
restored checkpoint; the observed completions show which checkpoint was the newest. A job that
replaces another one, with that one's state, is judged too; a finding about a job that did not
recover has Flink's own reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.checkpoint_ends import max_concurrent_of
from streamquake.harness.verdict.evidence.checkpoints import (
    Checkpoint,
    checkpoints_of,
    is_elsewhere,
)
from streamquake.harness.verdict.evidence.future_stamps import stamped_after_its_observation
from streamquake.harness.verdict.evidence.restores import Restart, restarts_of
from streamquake.harness.verdict.evidence.submitted_jobs import event_of_unknown_job
from streamquake.harness.verdict.evidence.unobserved_restarts import unobserved_restarts
from streamquake.reports.record.job_events import JobRestored
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit

CLOCK_S = 0.1
"""The tolerance between the engine's clock and the run's: a history relates them only by the
fastest observation."""
FINISHING_S = 1.0
"""Between its last acknowledgement and its completion, a checkpoint's metadata is written."""
Origin = Literal["checkpoint", "savepoint"]


@dataclass(frozen=True, kw_only=True)
class RestoredCheckpoint:
    """A restart, and the facts about the checkpoint that it restored."""

    restart: Restart
    newest: Checkpoint | None
    """The newest checkpoint of the job that had completed when it failed; if the job replaced
    another one, the newest that the other is known to have left."""
    restored_checkpoint: Checkpoint | None
    """The restored checkpoint; None where its completion was not observed."""
    possibly_newer: Checkpoint | None
    """The newest checkpoint that may have completed and is newer than the restored one."""
    contradicted: Checkpoint | None
    """The newest checkpoint, from the restored one on, whose record contradicts itself: it may be
    the one that had to be restored. None without one."""
    unended: Checkpoint | None
    """The newest checkpoint, newer than the restored one, whose end is not recorded although it had
    ended when the job failed. None without one."""
    completed_later: bool
    """Whether a checkpoint completed after all tasks ran and before the job failed again; by then a
    restore would have been reported."""

    @property
    def origin(self) -> Origin | None:
        """None where it is not known which one was restored."""
        if self.restored_checkpoint is None or _contradicted_path(self):
            return None
        return "savepoint" if self.restored_checkpoint.savepoint else "checkpoint"

    @property
    def age_s(self) -> float | None:
        """The age of the restored checkpoint when the job failed; later records are processed
        again."""
        if self.restored_checkpoint is None or self.restored_checkpoint.ended_s is None:
            return None
        broke_s = self.restart.broke_s
        since_s = broke_s if self.restart.replaced_s is None else self.restart.replaced_s
        return round(max(0.0, since_s - self.restored_checkpoint.ended_s), 3)


@checks.register
class Restore(Check):
    """Held when every restart restored the newest completed checkpoint and ran again, in time.
    Undecided where the job was not seen to run again.

    A restart that failed again before a restore was seen belongs to the next one: only what was
    restored in the end is judged. It does not if a checkpoint was triggered and completed in
    between: then every task ran, and it is undecided. So is a restore whose stamp the engine's
    other reports contradict, one with the path of another checkpoint, and every restore beside one
    of a job that was not submitted, or where a stamp of the engine is later than its event.

    A checkpoint that was seen to complete only after the restore had completed before the failure
    if a later one had been triggered by then, and one is taken at a time. Else, if it was not
    restored, it is undecided where its last acknowledgement was a second or more before the
    failure, and is not judged otherwise: its metadata may have been missing. It is undecided too
    where an older one was restored, and its own end is not recorded although it had ended."""

    name: ClassVar[str] = "restore"
    classes: ClassVar[tuple[str, ...]] = (
        "not restored",
        "did not come back",
        "nothing restored",
        "older checkpoint restored",
        "restored from a checkpoint",
        "restored from a savepoint",
        "too slow",
    )

    within_s: Limit | None = None
    """Seconds from the detection of a failure until every task ran again."""
    from_: Annotated[Origin | None, Field(alias="from")] = None
    """What every restart must restore."""

    def check(self, case: JudgedRun) -> CheckResult:
        checkpoints = checkpoints_of(case.history)
        restarts, at_once = restarts_of(case.history), max_concurrent_of(case.history)
        found = [
            _restored_checkpoint(
                restart,
                checkpoints,
                at_once.get(restart.job),
                since_s=_since_s(restart, restarts[:number]),
                until_s=_until_s(restart, restarts[number + 1 :]),
            )
            for number, restart in enumerate(restarts)
        ]
        counts = {**_figures(found), **_increments(checkpoints)}
        if not found:
            return self.undecided("no restart was seen, so nothing was restored", (), **counts)
        for wrong in (
            event_of_unknown_job(case.history, JobRestored),
            stamped_after_its_observation(case.history),
        ):
            if wrong is not None:
                return self.undecided(wrong, (), **counts)
        findings = tuple(finding for each in found for finding in self._findings(each))
        if findings:
            wrong = ", ".join(f"{finding.what} ({finding.where})" for finding in findings)
            return self.violated(f"{wrong}; {_message(found)}", findings, **counts)
        problems = [problem for each in found for problem in self._uncertainties(each)]
        if problems := [*problems, *unobserved_restarts(case.history)]:
            return self.undecided("; ".join(problems), (), **counts)
        return self.held(_message(found), **counts)

    def _findings(self, each: RestoredCheckpoint) -> Iterator[Finding]:
        restart, newest = each.restart, each.newest
        facts = {"restored": restart.checkpoint, "newest": newest.number if newest else None}
        detail = {**facts, "cause": restart.cause}
        if restart.failed:
            what = "not restored" if restart.submitted else "did not come back"
            failure = {"reason": restart.failed, "written": restart.written}
            yield Finding(what=what, where=restart.where, detail={**detail, **failure})
        if (
            newest is not None
            and restart.checkpoint is None
            and each.completed_later
            and not _given_path(restart)
        ):
            yield Finding(what="nothing restored", where=restart.where, detail=detail)
        number = restart.checkpoint
        if (
            newest
            and number is not None
            and number < newest.number
            and not _differs_from_given(each)
            and not _contradicted_path(each)
        ):
            age_s = restart.broke_s - (newest.ended_s or 0.0)
            older = {**detail, "newest_completed_before_s": round(age_s, 3)}
            yield Finding(what="older checkpoint restored", where=restart.where, detail=older)
        if self.from_ is not None and each.origin not in (None, self.from_):
            what = f"restored from a {each.origin}"
            yield Finding(what=what, where=restart.where, detail=detail)
        took_s = restart.phases["restart_s"]
        if self.within_s is not None and took_s is not None and took_s > self.within_s:
            slow = {
                **restart.phases,
                "initializing_ms": restart.initializing_ms,
                "slowest": restart.slowest,
                "allowed_s": self.within_s,
            }
            yield Finding(what="too slow", where=restart.where, detail=slow)

    def _uncertainties(self, each: RestoredCheckpoint) -> Iterator[str]:
        """The reasons why a restart cannot be judged."""
        restart = each.restart
        if restart.checkpoint is None and each.newest is None and not restart.submitted:
            yield f"{restart.where}: no checkpoint had completed that could have been restored"
        elif restart.checkpoint is None:
            yield f"{restart.where}: no restore was seen"
        elif each.restored_checkpoint is None:
            yield (
                f"{restart.where}: checkpoint {restart.checkpoint} was restored, which was not "
                "seen to complete"
            )
        if (
            possibly_newer := each.possibly_newer
        ) is not None and possibly_newer.acknowledged_s is not None:
            ago_s = restart.broke_s - possibly_newer.acknowledged_s
            yield (
                f"{restart.where}: checkpoint {restart.checkpoint} was restored, and checkpoint "
                f"{possibly_newer.number}, acknowledged {ago_s:.1f} s before, was seen to "
                "complete too late"
            )
        if each.contradicted is not None:
            yield f"{restart.where}: {each.contradicted.where} {each.contradicted.contradiction}"
        if each.unended is not None:
            yield (
                f"{restart.where}: checkpoint {restart.checkpoint} was restored, and the end of "
                f"{each.unended.where} was not recorded, which had ended before"
            )
        if contradiction := restart.contradiction or _contradiction(each):
            yield f"{restart.where}: {contradiction}"
        if restart.running_s is None:
            yield f"{restart.where}: not every task was seen to run again"


def _contradiction(each: RestoredCheckpoint) -> str:
    """A message about contradictions in the record of a restore; empty without any."""
    restart, newest = each.restart, each.newest
    restored_text = f"checkpoint {restart.checkpoint} was restored"
    if _differs_from_given(each):
        return f"{restored_text} from {restart.path}, and the job was given {_given_path(restart)}"
    if place := _contradicted_path(each):
        return f"{restored_text} from {place}"
    for first in restart.set_back_first:
        if newest is not None and first < newest.number:
            return f"{restored_text}, and checkpoint {first} just before it"
    return ""


def _contradicted_path(each: RestoredCheckpoint) -> str:
    """From where a checkpoint is recorded to be restored, if that is the path of another one, or
    not its own; empty otherwise. Then it is not known which one was restored."""
    restart, restored_checkpoint = each.restart, each.restored_checkpoint
    if restored_checkpoint is None:
        return ""
    if restored_checkpoint.number != restart.checkpoint:
        return f"the path of checkpoint {restored_checkpoint.number}"
    own_checkpoint = restored_checkpoint.job == restart.job and not restart.submitted
    if own_checkpoint and restart.path and restored_checkpoint.path not in ("", restart.path):
        return f"{restart.path}, and is stored in {restored_checkpoint.path}"
    return ""


def _differs_from_given(each: RestoredCheckpoint) -> bool:
    """Whether a job that replaced another one restored another path than the fault's evidence has,
    and no checkpoint of its own."""
    own_checkpoint = (
        each.restored_checkpoint is not None and each.restored_checkpoint.job == each.restart.job
    )
    return not own_checkpoint and is_elsewhere(_given_path(each.restart), each.restart.path)


def _given_path(restart: Restart) -> str:
    """The path of the given state; empty where it is not known."""
    return restart.order.restored_from if restart.order else ""


def _until_s(restart: Restart, later: Sequence[Restart]) -> float | None:
    """When the job failed again; None where it did not."""
    return next((each.broke_s for each in later if each.job == restart.job), None)


def _since_s(restart: Restart, earlier: Sequence[Restart]) -> float:
    """When the job was restored before: what was in progress then need not have ended."""
    restored_s = [each.restored_s or each.broke_s for each in earlier if each.job == restart.job]
    return max(restored_s, default=0.0)


def _restored_checkpoint(
    restart: Restart,
    checkpoints: Sequence[Checkpoint],
    at_once: int | None,
    *,
    since_s: float,
    until_s: float | None,
) -> RestoredCheckpoint:
    """`at_once` is how many checkpoints its job takes at the same time; None where it is not
    known. `since_s` is its restore before, `until_s` its next failure."""
    completed = [
        each
        for each in checkpoints
        if (each.completed or each.contradiction) and each.ended_s is not None
    ]
    own_checkpoint = [each for each in completed if each.job == restart.job]
    # Flink does not restart from savepoints (since 1.15).
    regular = [each for each in own_checkpoint if not (each.savepoint and each.of_known_type)]
    last = _triggered_last(checkpoints, restart) if at_once == 1 else None
    before = [each for each in regular if _had_completed(each, restart, last)]
    possibly_newer = [
        each for each in regular if each not in before and _may_have_completed(each, restart)
    ]
    after_s = restart.running_s
    completed_later = (
        after_s is not None
        and after_s < (each.ended_s or 0) <= (until_s if until_s is not None else math.inf)
        for each in own_checkpoint
    )
    left = _left_by_former(completed, restart) if restart.submitted else before
    return RestoredCheckpoint(
        restart=restart,
        newest=_newest(each for each in left if not each.contradiction),
        restored_checkpoint=_restored_one(restart, completed, before),
        possibly_newer=_newest(possibly_newer),
        contradicted=_newest(
            each
            for each in (left if restart.submitted else regular)
            if each.contradiction
            and each.triggered_s <= restart.broke_s
            and restart.checkpoint is not None
            and each.number >= restart.checkpoint
        ),
        unended=_newest(
            each
            for each in checkpoints
            if each.job == restart.job
            and each.began_s > since_s
            and _ended_unseen(each, restart, last)
        ),
        completed_later=any(completed_later),
    )


def _restored_one(
    restart: Restart, completed: Sequence[Checkpoint], before: Sequence[Checkpoint]
) -> Checkpoint | None:
    """The completed checkpoint that was restored, by its path or its number. `before` are those of
    the job itself that had completed when it failed: from then on it restores none of another job,
    which may have one of the same number."""
    numbered = [each for each in completed if each.number == restart.checkpoint]
    own = [each for each in numbered if each.job == restart.job]
    others = [
        each for each in numbered if each not in own and not is_elsewhere(each.path, restart.path)
    ]
    candidates = [*own, *others] if restart.submitted or not before else own
    at_path = [each for each in completed if restart.path and each.path == restart.path]
    restored = [each for each in candidates if each in at_path] or at_path or candidates
    return restored[0] if restored else None


def _left_by_former(completed: Iterable[Checkpoint], restart: Restart) -> list[Checkpoint]:
    """The state that the replaced job is known to have left: the checkpoints observed to complete
    before its end was ordered and, if the order was with a savepoint, its savepoints. Empty without
    an order."""
    order = restart.order
    if order is None or order.kept_state is None:
        return []
    return [
        each
        for each in completed
        if each.job == restart.former
        and (order.savepoint if each.savepoint else (each.ended_s or 0.0) <= order.at_s)
    ]


def _triggered_last(checkpoints: Iterable[Checkpoint], restart: Restart) -> int | None:
    """The newest checkpoint of the job that had been triggered when it failed."""
    return max(
        (
            each.number
            for each in checkpoints
            if each.job == restart.job
            and not each.savepoint
            and _began_s(each) <= restart.broke_s - CLOCK_S
        ),
        default=None,
    )


def _began_s(checkpoint: Checkpoint) -> float:
    """When it was triggered: by the engine's own stamps where it has them, else by the
    observation."""
    if checkpoint.acknowledged_s is None or checkpoint.duration_ms is None:
        return checkpoint.triggered_s
    return min(checkpoint.triggered_s, checkpoint.acknowledged_s - checkpoint.duration_ms / 1000)


def _had_completed(checkpoint: Checkpoint, restart: Restart, last: int | None) -> bool:
    """Whether it had completed when the job failed: observed by then, or acknowledged by then and
    observed complete before the restore. If checkpoints are taken one at a time, each had ended
    before the `last` one was triggered."""
    seen_s = checkpoint.ended_s or 0.0
    acknowledged_s, restored_s = checkpoint.acknowledged_s, restart.restored_s
    if seen_s <= restart.broke_s or acknowledged_s is None or restored_s is None:
        return seen_s <= restart.broke_s
    followed = last is not None and checkpoint.number < last and not checkpoint.micro_batch
    return acknowledged_s <= restart.broke_s and (followed or seen_s <= restored_s - CLOCK_S)


def _may_have_completed(checkpoint: Checkpoint, restart: Restart) -> bool:
    """Whether it was acknowledged so long before the failure that it should have completed, and is
    newer than the restored one."""
    acknowledged_s, restored = checkpoint.acknowledged_s, restart.checkpoint
    if restart.submitted or checkpoint.micro_batch or acknowledged_s is None or restored is None:
        return False
    return checkpoint.number > restored and acknowledged_s <= restart.broke_s - FINISHING_S


def _ended_unseen(checkpoint: Checkpoint, restart: Restart, last: int | None) -> bool:
    """Whether its end is not recorded although it had ended when the `last` one was triggered,
    since they are taken one at a time, and it is newer than the restored one."""
    if checkpoint.ended_s is not None or checkpoint.savepoint or checkpoint.micro_batch:
        return False
    if restart.submitted or restart.checkpoint is None or last is None:
        return False
    return restart.checkpoint < checkpoint.number < last


def _newest(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
    return max(checkpoints, key=lambda each: each.number, default=None)


def _figures(found: Sequence[RestoredCheckpoint]) -> dict[str, float | None]:
    """The last restored checkpoint; of each phase, the longest of all restarts."""
    restored = [each for each in found if each.restart.checkpoint is not None]
    last = restored[-1] if restored else None
    restored_checkpoint = last.restored_checkpoint if last else None
    phases = {
        phase: _longest(each.restart.phases[phase] for each in found)
        for phase in (
            "detect_s",
            "end_s",
            "submit_s",
            "until_restored_s",
            "until_running_s",
            "restart_s",
        )
    }
    failed = [each.restart for each in found if each.restart.failed]
    return {
        "restarts": sum(not each.restart.submitted for each in found),
        "starts": sum(each.restart.submitted for each in found),
        "failed": len(failed),
        "written_by_failed": sum(each.written for each in failed) if failed else None,
        "parallelism": last.restart.parallelism if last else None,
        "former_parallelism": last.restart.former_parallelism if last else None,
        "restores": len(restored),
        "restored_checkpoint": last.restart.checkpoint if last else None,
        "newest_checkpoint": last.newest.number if last and last.newest else None,
        "restored_bytes": restored_checkpoint.state_bytes if restored_checkpoint else None,
        "restored_in_flight_bytes": restored_checkpoint.persisted_bytes
        if restored_checkpoint
        else None,
        "age_s": _longest(each.age_s for each in found),
        **phases,
        "initializing_ms": _longest(each.restart.initializing_ms for each in found),
    }


def _increments(checkpoints: Iterable[Checkpoint]) -> dict[str, float | None]:
    """How many completed checkpoints wrote less than their full state, and how many all of it."""
    sizes = [
        (each.checkpointed_bytes, each.state_bytes)
        for each in checkpoints
        if each.completed and not each.savepoint
    ]
    facts = [(wrote, state) for wrote, state in sizes if wrote is not None and state is not None]
    incremental = sum(wrote < state for wrote, state in facts)
    return {
        "incremental": incremental if facts else None,
        "full": len(facts) - incremental if facts else None,
    }


def _longest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _message(found: Sequence[RestoredCheckpoint]) -> str:
    """The restored checkpoint of the slowest restart, and the durations of its phases."""
    each = max(found, key=lambda one: one.restart.phases["restart_s"] or 0.0)
    restart, state_bytes = (
        each.restart,
        each.restored_checkpoint.state_bytes if each.restored_checkpoint else None,
    )
    number = restart.checkpoint
    what = "nothing" if number is None else f"{each.origin or 'checkpoint'} {number}"
    size = "" if state_bytes is None else f" ({state_bytes:,} bytes)"
    phases_text = (
        ("detected after", restart.phases["detect_s"]),
        ("the job before it ended after", restart.phases["end_s"]),
        ("submitted after", restart.phases["submit_s"]),
        ("state assigned after", restart.phases["until_restored_s"]),
        ("running after", restart.phases["until_running_s"]),
    )
    times = [f"{word} {took_s:.1f} s" for word, took_s in phases_text if took_s is not None]
    if restart.initializing_ms is not None:
        times.append(f"{restart.slowest} initialized for {restart.initializing_ms:,.0f} ms")
    prefix = f"{len(found)} restarts, the slowest: " if len(found) > 1 else ""
    parts = [f"{prefix}{what}{size} restored{_width_changed(restart)}"]
    parts += [", ".join(times)] if times else []
    return "; ".join([*parts, *(one.restart.failed for one in found if one.restart.failed)])


def _width_changed(restart: Restart) -> str:
    """The change of the parallelism; empty without one."""
    now, before = restart.parallelism, restart.former_parallelism
    changed = None not in (now, before) and now != before
    return f" at a parallelism of {now} after {before}" if changed else ""
