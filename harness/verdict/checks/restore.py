"""`restore`: a job that restarts is set back to its newest checkpoint, and how long that takes.

To be set back further is no loss by itself, but records are worked on again that need not be, and a
sink's transactions of the newer checkpoint are left open. What Flink restores is reported by its
own statistics; which checkpoint was the newest is known from those that were seen to complete. A
job that takes the place of another, with that one's state, is judged too; one that does not come
back is found with Flink's own reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.checkpoint_ends import at_a_time
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint, checkpoints_of
from streamquake.harness.verdict.evidence.restores import Restart, restarts_of, same_place
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit

CLOCK_S = 0.1
"""A history relates the engine's clock to the run's only by what was seen soonest."""
FINISHING_S = 1.0
"""Between its last acknowledgement and its completion, a checkpoint's metadata is written."""
Origin = Literal["checkpoint", "savepoint"]


@dataclass(frozen=True, kw_only=True)
class RestoredCheckpoint:
    """A restart, and what is known of the checkpoint it was set back to."""

    restart: Restart
    newest: Checkpoint | None
    """The newest checkpoint of the job that had completed when it broke; of a job that takes
    another's place, what that one is known to have left."""
    taken: Checkpoint | None
    """The one that was restored; None where its completion was not seen."""
    unsure: Checkpoint | None
    """The newest one of which it is not known whether it had, and which is newer than what was
    restored."""
    went_on: bool
    """Whether a checkpoint completed after all tasks ran, and before the job broke again; a restore
    would be known by then."""

    @property
    def origin(self) -> Origin | None:
        if self.taken is None:
            return None
        return "savepoint" if self.taken.savepoint else "checkpoint"

    @property
    def age_s(self) -> float | None:
        """How old what was restored was when the job broke; what came since is worked on again."""
        if self.taken is None or self.taken.ended_s is None:
            return None
        broke_s = self.restart.broke_s
        since_s = broke_s if self.restart.replaced_s is None else self.restart.replaced_s
        return round(max(0.0, since_s - self.taken.ended_s), 3)


@checks.register
class Restore(Check):
    """Held when every restart was set back to the newest completed checkpoint, in time, and came
    back."""

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
    """Seconds from the moment a failure was noticed until every task ran again."""
    from_: Annotated[Origin | None, Field(alias="from")] = None
    """What must have been restored."""

    def check(self, case: JudgedRun) -> CheckResult:
        checkpoints = checkpoints_of(case.history)
        restarts, at_once = restarts_of(case.history), at_a_time(case.history)
        found = [
            _restored(
                restart,
                checkpoints,
                at_once.get(restart.job),
                _until_s(restart, restarts[number + 1 :]),
            )
            for number, restart in enumerate(restarts)
        ]
        counts = {**_figures(found), **_increments(checkpoints)}
        if not found:
            return self.undecided("no restart was seen, so nothing was restored", (), **counts)
        findings = tuple(finding for each in found for finding in self._findings(each))
        if findings:
            wrong = ", ".join(f"{finding.what} ({finding.where})" for finding in findings)
            return self.violated(f"{wrong}; {_message(found)}", findings, **counts)
        if problems := [problem for each in found for problem in self._uncertainties(each)]:
            return self.undecided("; ".join(problems), (), **counts)
        return self.held(_message(found), **counts)

    def _findings(self, each: RestoredCheckpoint) -> Iterator[Finding]:
        restart, newest = each.restart, each.newest
        known = {"restored": restart.checkpoint, "newest": newest.number if newest else None}
        detail = {**known, "cause": restart.cause}
        if restart.failed:
            what = "not restored" if restart.submitted else "did not come back"
            arrived = {"reason": restart.failed, "written": restart.written}
            yield Finding(what=what, where=restart.where, detail={**detail, **arrived})
        if (
            newest is not None
            and restart.checkpoint is None
            and each.went_on
            and not _given(restart)
        ):
            yield Finding(what="nothing restored", where=restart.where, detail=detail)
        number = restart.checkpoint
        if newest and number is not None and number < newest.number and not _not_as_given(each):
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
        """What keeps a restart from being judged."""
        restart = each.restart
        if restart.checkpoint is None and each.newest is None and not restart.submitted:
            yield f"{restart.where}: no checkpoint had completed that could have been restored"
        elif restart.checkpoint is None:
            yield f"{restart.where}: no restore was seen"
        elif each.taken is None:
            yield (
                f"{restart.where}: checkpoint {restart.checkpoint} was restored, which was not "
                "seen to complete"
            )
        if (unsure := each.unsure) is not None and unsure.acknowledged_s is not None:
            ago_s = restart.broke_s - unsure.acknowledged_s
            yield (
                f"{restart.where}: checkpoint {restart.checkpoint} was restored, and checkpoint "
                f"{unsure.number}, acknowledged {ago_s:.1f} s before, was seen to complete too late"
            )
        if contradiction := _contradiction(each):
            yield f"{restart.where}: {contradiction}"
        if self.within_s is not None and restart.running_s is None:
            yield f"{restart.where}: not every task was seen to run again"


def _contradiction(each: RestoredCheckpoint) -> str:
    """What the record has of a restore that cannot all be true."""
    restart, taken, newest = each.restart, each.taken, each.newest
    named = f"checkpoint {restart.checkpoint} was restored"
    if restart.triggered_s is not None and restart.restored_s is not None:
        early_s = restart.triggered_s - restart.restored_s
        if early_s > CLOCK_S:
            return f"{named} {early_s:.1f} s before it was triggered"
    if _not_as_given(each):
        return f"{named} from {restart.path}, and the job was given {_given(restart)}"
    if taken is not None and taken.number != restart.checkpoint:
        return f"{named} from where checkpoint {taken.number} lies"
    own = taken is not None and taken.job == restart.job and not restart.submitted
    if own and restart.path and taken and taken.path not in ("", restart.path):
        return f"{named} from {restart.path}, and lies in {taken.path}"
    for first in restart.set_back_first:
        if newest is not None and first < newest.number:
            return f"{named}, and checkpoint {first} just before it"
    return ""


def _not_as_given(each: RestoredCheckpoint) -> bool:
    """Whether a job that took another's place is recorded to have been set back to something else
    than the fault that replaced it saw restored, and to none of its own."""
    given, path = _given(each.restart), each.restart.path
    own = each.taken is not None and each.taken.job == each.restart.job
    return bool(given and path) and not own and not same_place(given, path)


def _given(restart: Restart) -> str:
    """Where that lies; empty where it is not known."""
    return restart.order.given if restart.order else ""


def _until_s(restart: Restart, later: Sequence[Restart]) -> float | None:
    """When the job broke again; None where it did not."""
    return next((each.broke_s for each in later if each.job == restart.job), None)


def _restored(
    restart: Restart,
    checkpoints: Sequence[Checkpoint],
    at_once: int | None,
    until_s: float | None,
) -> RestoredCheckpoint:
    """`at_once` is how many checkpoints its job takes at the same time, as far as that is known."""
    completed = [each for each in checkpoints if each.completed and each.ended_s is not None]
    own = [each for each in completed if each.job == restart.job]
    # A savepoint is no place to restart from (since Flink 1.15).
    regular = [each for each in own if not each.savepoint]
    last = _triggered_last(checkpoints, restart) if at_once == 1 else None
    before = [each for each in regular if _had_completed(each, restart, last)]
    unsure = [each for each in regular if each not in before and _may_have(each, restart)]
    after_s = restart.running_s
    went_on = (
        after_s is not None
        and after_s < (each.ended_s or 0) <= (until_s if until_s is not None else math.inf)
        for each in own
    )
    # What a job was first started from is another job's.
    there = [each for each in completed if restart.path and each.path == restart.path]
    called = [each for each in (*own, *completed) if each.number == restart.checkpoint]
    restored = [each for each in called if each in there] or there or called
    return RestoredCheckpoint(
        restart=restart,
        newest=max(
            _left(completed, restart) if restart.submitted else before, key=_number, default=None
        ),
        taken=restored[0] if restored else None,
        unsure=max(unsure, key=_number, default=None),
        went_on=any(went_on),
    )


def _left(completed: Iterable[Checkpoint], restart: Restart) -> list[Checkpoint]:
    """What the job before it is known to have left: the checkpoints that were seen to complete
    before its end was ordered and, where that was ordered with one, its savepoints. Without an
    order it is not known what a job was to be started from."""
    order = restart.order
    if order is None or order.keeping is None:
        return []
    return [
        each
        for each in completed
        if each.job == restart.former
        and (order.savepoint if each.savepoint else (each.ended_s or 0.0) <= order.at_s)
    ]


def _triggered_last(checkpoints: Iterable[Checkpoint], restart: Restart) -> int | None:
    """The newest checkpoint of its job that had been triggered when it broke."""
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
    """When it was triggered: by the engine's own stamps where it has them, else when that was
    seen."""
    if checkpoint.acknowledged_s is None or checkpoint.duration_ms is None:
        return checkpoint.triggered_s
    return min(checkpoint.triggered_s, checkpoint.acknowledged_s - checkpoint.duration_ms / 1000)


def _had_completed(checkpoint: Checkpoint, restart: Restart, last: int | None) -> bool:
    """Whether it was complete when the job broke: seen so by then, or, where all of it had been
    acknowledged by then, seen so before anything was restored. Of checkpoints that are taken one by
    one, each had ended before the `last` one was triggered."""
    seen_s = checkpoint.ended_s or 0.0
    acknowledged_s, restored_s = checkpoint.acknowledged_s, restart.restored_s
    if seen_s <= restart.broke_s or acknowledged_s is None or restored_s is None:
        return seen_s <= restart.broke_s
    followed = last is not None and checkpoint.number < last and not checkpoint.micro_batch
    return acknowledged_s <= restart.broke_s and (followed or seen_s <= restored_s - CLOCK_S)


def _may_have(checkpoint: Checkpoint, restart: Restart) -> bool:
    """Whether it was acknowledged so long before the job broke that it should have been complete,
    and is newer than what was restored."""
    acknowledged_s, restored = checkpoint.acknowledged_s, restart.checkpoint
    if restart.submitted or checkpoint.micro_batch or acknowledged_s is None or restored is None:
        return False
    return checkpoint.number > restored and acknowledged_s <= restart.broke_s - FINISHING_S


def _number(checkpoint: Checkpoint) -> int:
    return checkpoint.number


def _figures(found: Sequence[RestoredCheckpoint]) -> dict[str, float | None]:
    """What was restored last; of each phase, the longest of all restarts."""
    restored = [each for each in found if each.restart.checkpoint is not None]
    last = restored[-1] if restored else None
    taken = last.taken if last else None
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
        "restored_bytes": taken.state_bytes if taken else None,
        "restored_in_flight_bytes": taken.persisted_bytes if taken else None,
        "age_s": _longest(each.age_s for each in found),
        **phases,
        "initializing_ms": _longest(each.restart.initializing_ms for each in found),
    }


def _increments(checkpoints: Iterable[Checkpoint]) -> dict[str, float | None]:
    """How many completed checkpoints wrote less than the state they stand for, and how many all."""
    sizes = [
        (each.checkpointed_bytes, each.state_bytes)
        for each in checkpoints
        if each.completed and not each.savepoint
    ]
    known = [(wrote, state) for wrote, state in sizes if wrote is not None and state is not None]
    incremental = sum(wrote < state for wrote, state in known)
    return {
        "incremental": incremental if known else None,
        "full": len(known) - incremental if known else None,
    }


def _longest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _message(found: Sequence[RestoredCheckpoint]) -> str:
    """What the slowest restart restored, and where its time went."""
    each = max(found, key=lambda one: one.restart.phases["restart_s"] or 0.0)
    restart, bytes_ = each.restart, each.taken.state_bytes if each.taken else None
    number = restart.checkpoint
    what = "nothing" if number is None else f"{each.origin or 'checkpoint'} {number}"
    size = "" if bytes_ is None else f" ({bytes_:,} bytes)"
    words = (
        ("noticed after", restart.phases["detect_s"]),
        ("the job before it ended after", restart.phases["end_s"]),
        ("submitted after", restart.phases["submit_s"]),
        ("state handed out after", restart.phases["until_restored_s"]),
        ("running after", restart.phases["until_running_s"]),
    )
    times = [f"{word} {took_s:.1f} s" for word, took_s in words if took_s is not None]
    if restart.initializing_ms is not None:
        times.append(f"{restart.slowest} initialized for {restart.initializing_ms:,.0f} ms")
    many = f"{len(found)} restarts, the slowest: " if len(found) > 1 else ""
    parts = [f"{many}{what}{size} restored{_width_changed(restart)}"]
    parts += [", ".join(times)] if times else []
    return "; ".join([*parts, *(one.restart.failed for one in found if one.restart.failed)])


def _width_changed(restart: Restart) -> str:
    """What changed of the parallelism, if anything did."""
    now, before = restart.parallelism, restart.former_parallelism
    changed = None not in (now, before) and now != before
    return f" at a parallelism of {now} after {before}" if changed else ""
