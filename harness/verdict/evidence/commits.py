"""Commits of the sink: which growth of an output belongs to which checkpoint.

A sink that is exactly-once commits what it wrote when the checkpoint completed; a reader of
committed records sees the output grow then, and not before.
"""

from __future__ import annotations

from collections.abc import Callable

from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.run_events import OutputSeen


class CommitWatch:
    """Records `sink committed` at the first growth of each output after a completed checkpoint."""

    def __init__(self, show_message: Callable[..., None]) -> None:
        self._record = show_message
        self._checkpoint: int | None = None
        self._reported: set[str] = set()

    def see(self, event: Event) -> None:
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
