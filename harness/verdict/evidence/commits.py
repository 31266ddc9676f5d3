"""Commits of the sink: which growth of an output belongs to which checkpoint.

A sink that is exactly-once commits what it wrote when the checkpoint completed; a reader of
committed records sees the output grow then, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamquake.reports.record.event import Action, Event


class CommitWatch:
    """Says `sink committed` at the first growth of each output after a completed checkpoint."""

    def __init__(self, show_message: Callable[..., None]) -> None:
        self._record = show_message
        self._checkpoint: Any = None
        self._reported: set[str] = set()

    def see(self, event: Event) -> None:
        if event.action == Action.CHECKPOINT_COMPLETED:
            self._checkpoint = event.value["checkpoint"]
            self._reported = set()
        elif event.action == Action.OUTPUT_SEEN and self._checkpoint is not None:
            output = str(event.value["output"])
            if output not in self._reported:
                self._reported.add(output)
                self._record(
                    Action.SINK_COMMITTED,
                    process=event.process,
                    checkpoint=self._checkpoint,
                    output=output,
                    end=event.value.get("end"),
                )
