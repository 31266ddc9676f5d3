"""The phases of the checkpoints and savepoints of a history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamquake.harness.coverage.checkpoint_kinds import CheckpointKinds
from streamquake.harness.coverage.phase_window import NEVER_NS, Moment, PhaseWindow
from streamquake.harness.verdict.evidence.checkpoint_completion import IN_PROGRESS
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.reports.coverage.cell import CheckpointKind, Phase
from streamquake.reports.record.checkpoint_events import (
    CheckpointAllAcknowledged,
    CheckpointCompleted,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import FAILURES
from streamquake.reports.record.run_events import SinkCommitted


def checkpoint_windows(
    history: History, checkpoints: Sequence[Checkpoint], kinds: CheckpointKinds
) -> Iterator[PhaseWindow]:
    """The phases of every checkpoint; micro-batches have others."""
    facts = _Facts(history)
    for checkpoint in checkpoints:
        if not checkpoint.micro_batch:
            yield from _CheckpointPhases(checkpoint, kinds.of(checkpoint), facts).windows()


class _Facts:
    """What the history has about checkpoints beside `Checkpoint`."""

    def __init__(self, history: History) -> None:
        clock = EngineClock(history)
        self.all_acknowledged_ns: dict[tuple[Any, int], int] = {
            (event.job, event.checkpoint): clock.moment_ns(event)
            for event in history.of(CheckpointAllAcknowledged)
        }
        self.in_progress_ns: dict[tuple[Any, int], int] = {}
        for event in history.of(*IN_PROGRESS):
            key = (event.job, event.checkpoint)
            self.in_progress_ns[key] = max(event.at_ns, self.in_progress_ns.get(key, 0))
        self._committed = history.of(SinkCommitted)
        self._next_ends = sorted(e.at_ns for e in history.of(CheckpointCompleted, *FAILURES))

    def committed_by_ns(self, number: int, completed_ns: int) -> int:
        """The latest moment at which the output of a checkpoint was committed for the first time:
        when it was observed, or, where it was not, the next completion or failure."""
        seen = (e.at_ns for e in self._committed if e.checkpoint == number)
        after = (at_ns for at_ns in self._next_ends if at_ns > completed_ns)
        return min((at_ns for at_ns in (*seen, *after) if at_ns >= completed_ns), default=NEVER_NS)


class _CheckpointPhases:
    """The phases of one checkpoint."""

    def __init__(self, checkpoint: Checkpoint, kind: CheckpointKind, facts: _Facts) -> None:
        self._checkpoint, self._kind, self._facts = checkpoint, kind, facts
        self._key = (checkpoint.job, checkpoint.number)
        self._began = Moment.stamped(_ns(checkpoint.began_s), _ns(checkpoint.triggered_s))
        self._fails = not checkpoint.completed and checkpoint.ended_s is not None

    def windows(self) -> Iterator[PhaseWindow]:
        """In their order; of a checkpoint that failed, those until its failure."""
        end, all_acknowledged = self._end(), self._all_acknowledged()
        if self._checkpoint.savepoint:
            yield self._window(Phase.SAVEPOINT, self._began, end, failed=self._fails)
        if all_acknowledged is None:
            yield self._window(Phase.BARRIER, self._began, end, failed=self._fails)
            return
        yield self._window(Phase.BARRIER, self._began, all_acknowledged)
        yield self._window(Phase.ACKNOWLEDGED, all_acknowledged, end, failed=self._fails)
        if self._checkpoint.completed:
            completed_ns = _ns(self._checkpoint.ended_s or 0)
            committed_ns = self._facts.committed_by_ns(self._checkpoint.number, completed_ns)
            committed = Moment(earliest_ns=end.earliest_ns, latest_ns=committed_ns)
            yield self._window(Phase.COMPLETED, end, committed)

    def _end(self) -> Moment:
        """Its completion, between the last sight of it in progress and the observation; its
        failure, by the engine's stamp; without both it was in progress when it was seen last."""
        each, seen_ns = self._checkpoint, self._facts.in_progress_ns.get(self._key, 0)
        if each.contradiction:
            return Moment.unproven()
        if each.ended_s is None:
            return Moment(earliest_ns=seen_ns, latest_ns=NEVER_NS)
        if not each.completed and each.acknowledged_s is not None:
            return Moment.failed(_ns(each.acknowledged_s))
        last_ns = 0 if each.acknowledged_s is None else _ns(each.acknowledged_s)
        earliest_ns = max(Moment.stamped(last_ns).earliest_ns, seen_ns)
        return Moment(earliest_ns=earliest_ns, latest_ns=max(earliest_ns, _ns(each.ended_s)))

    def _all_acknowledged(self) -> Moment | None:
        """When every subtask had acknowledged it; None where not all of them did."""
        each, observed_ns = self._checkpoint, self._facts.all_acknowledged_ns.get(self._key)
        if each.completed and each.acknowledged_s is not None:
            return Moment.stamped(_ns(each.acknowledged_s), _ns(each.ended_s or 0))
        if observed_ns is not None:
            return Moment.stamped(observed_ns)
        return Moment.unproven(_ns(each.ended_s or 0)) if each.completed else None

    def _window(
        self, phase: Phase, begin: Moment, end: Moment, *, failed: bool = False
    ) -> PhaseWindow:
        return PhaseWindow(
            phase=phase,
            kind=self._kind,
            begin=begin,
            end=end,
            ends_with_failure=failed,
            job=self._checkpoint.job,
            checkpoint=self._checkpoint.number,
            acknowledged=self._by_subtask() if phase is Phase.BARRIER else {},
        )

    def _by_subtask(self) -> dict[tuple[str, int], Moment]:
        began_ns = _ns(self._checkpoint.began_s)
        return {
            (part.vertex, part.subtask): Moment.stamped(began_ns + part.took_ms * 1_000_000)
            for part in self._checkpoint.parts or ()
        }


def _ns(at_s: float) -> int:
    return round(at_s * 1e9)
