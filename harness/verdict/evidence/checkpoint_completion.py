"""When a checkpoint may have completed, from its acknowledgements and from the polls that saw it in
progress.

Flink gives no stamp of the completion, which is observed up to a second later. It may have followed
the last acknowledgement at once, or much later, where the metadata is written slowly.
"""

from __future__ import annotations

from typing import Any

from streamquake.faults.schedule.event_times import acknowledged_ms
from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.reports.record.checkpoint_events import (
    CheckpointAcknowledged,
    CheckpointAllAcknowledged,
    CheckpointCompleted,
    CheckpointTriggered,
    checkpoint_number,
)
from streamquake.reports.record.history import History

IN_PROGRESS = (CheckpointTriggered, CheckpointAcknowledged, CheckpointAllAcknowledged)


class CompletionTimes:
    """When the checkpoints of a history may have completed."""

    def __init__(self, history: History) -> None:
        self._clock = EngineClock(history)
        self._in_progress_ns: dict[tuple[Any, int | None], int] = {}
        """(job, checkpoint) -> when it was seen in progress last."""
        for event in history.of(*IN_PROGRESS):
            key = (event.job, checkpoint_number(event))
            self._in_progress_ns[key] = max(event.at_ns, self._in_progress_ns.get(key, 0))

    def earliest_ns(self, completed: CheckpointCompleted, until_ns: int) -> int:
        """The earliest moment at which a checkpoint may have completed: its last acknowledgement.
        It is the observation of its completion where the record lacks that moment, or where the
        checkpoint was seen in progress at `until_ns` or later."""
        key = (completed.job, checkpoint_number(completed))
        in_progress_ns = self._in_progress_ns.get(key, 0)
        last_ms = acknowledged_ms(completed)
        if last_ms is None or in_progress_ns >= until_ns:
            return completed.at_ns
        return self._clock.stamped_ns(completed, last_ms)
