"""Commits of the sink: the checkpoint that each growth of an output belongs to.

An exactly-once sink commits its records when the checkpoint completes; only then does the output
grow for a reader of committed records.
"""

from __future__ import annotations

from collections.abc import Callable

from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.run_events import OutputSeen


class CommitRecorder:
    """Records `sink committed` at the first growth of each output after a completed checkpoint."""

    def __init__(self, record: Callable[..., None]) -> None:
        self._record = record
        self._checkpoint: int | None = None
        self._reported: set[str] = set()

    def observe(self, event: Event) -> None:
        if isinstance(event, CheckpointCompleted):
            self._checkpoint = event.checkpoint
            self._reported = set()
        elif (
            isinstance(event, OutputSeen)
            and self._checkpoint is not None
            and event.output not in self._reported
        ):
            self._reported.add(event.output)
            self._record(
                Action.SINK_COMMITTED,
                process=event.process,
                checkpoint=self._checkpoint,
                output=event.output,
                end=event.end,
            )
