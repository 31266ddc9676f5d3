"""Commits of the sink that do not follow from what is recorded of checkpoints and outputs.

A commit is recorded when an output is seen to grow, after a checkpoint was observed to complete.
Where the record does not have both before it, what was observed of the engine or of the output is
missing in it.
"""

from __future__ import annotations

from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import OutputSeen, SinkCommitted


def unknown_commit(history: History) -> str | None:
    """A message for the first commit after a checkpoint whose completion is not recorded before it,
    or at an end that its output was not seen to have; None without one. Of an output whose ends are
    not recorded none is known."""
    completed = set[int]()
    ends: dict[str, set[int]] = {}
    for event in history.of(CheckpointCompleted, OutputSeen, SinkCommitted):
        if isinstance(event, CheckpointCompleted):
            completed.add(event.checkpoint)
        elif isinstance(event, OutputSeen):
            if event.end is not None:
                ends.setdefault(event.output, set()).add(event.end)
        elif isinstance(event, SinkCommitted):
            if event.checkpoint not in completed:
                return f"{_text(event)}, whose completion is not recorded before it"
            if event.end is not None and event.end not in ends.get(event.output, {event.end}):
                return f"{_text(event)}, and was not seen to end at {event.end:,}"
    return None


def _text(commit: SinkCommitted) -> str:
    return f"the output {commit.output} grew by the commit of checkpoint {commit.checkpoint}"
