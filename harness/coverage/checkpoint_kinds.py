"""The kind of a checkpoint, also of one that never ended."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.harness.verdict.evidence.checkpoints import Checkpoint, is_elsewhere
from streamquake.harness.verdict.evidence.restores import Restart
from streamquake.reports.coverage.cell import CheckpointKind
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted

ALIGNED = "CHECKPOINT"
"""Flink's type of an aligned checkpoint; also of one that was not acknowledged yet."""


class CheckpointKinds:
    """The kinds of the checkpoints of one history."""

    def __init__(self, history: History, checkpoints: Sequence[Checkpoint]) -> None:
        self._checkpoints = checkpoints
        self._configs = {graph.job: graph.config or {} for graph in history.of(JobSubmitted)}
        self._batches = any(each.micro_batch for each in checkpoints)

    def of(self, checkpoint: Checkpoint) -> CheckpointKind:
        """By its reported type, and, of one that did not complete, by the settings of its job: it
        may have become unaligned later."""
        if checkpoint.micro_batch:
            return CheckpointKind.BATCH
        if checkpoint.savepoint:
            return CheckpointKind.SAVEPOINT
        if checkpoint.unaligned:
            return CheckpointKind.UNALIGNED
        if checkpoint.completed and checkpoint.kind == ALIGNED:
            return CheckpointKind.ALIGNED
        config = self._configs.get(checkpoint.job, {})
        match config.get("unaligned_checkpoints"), config.get("aligned_checkpoint_timeout"):
            case False, _:
                return CheckpointKind.ALIGNED
            case True, 0:
                return CheckpointKind.UNALIGNED
        return CheckpointKind.UNKNOWN

    def restored_by(self, restart: Restart) -> CheckpointKind:
        """The kind of the checkpoint that a restart restored; none where it restored none."""
        if self._batches:
            return CheckpointKind.BATCH
        if restart.restored_s is None:
            return CheckpointKind.NONE if restart.running_s else CheckpointKind.UNKNOWN
        found = [each for each in self._checkpoints if _is_restored(each, restart)]
        return self.of(found[-1]) if found else CheckpointKind.UNKNOWN

    def newest_at(self, at_ns: int) -> CheckpointKind:
        """The kind of the newest checkpoint that was triggered by a moment."""
        begun = [each for each in self._checkpoints if each.began_s * 1e9 <= at_ns]
        return self.of(begun[-1]) if begun else CheckpointKind.UNKNOWN


def _is_restored(checkpoint: Checkpoint, restart: Restart) -> bool:
    if checkpoint.number != restart.checkpoint or checkpoint.began_s > (restart.restored_s or 0):
        return False
    return not is_elsewhere(checkpoint.path, restart.path)
