"""Commits of the sink after checkpoints whose completion is missing in the record.

A commit is recorded after a checkpoint was observed to complete. Where the record does not have
that checkpoint, what was observed of the engine is missing in it.
"""

from __future__ import annotations

from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import SinkCommitted


def unknown_commit(history: History) -> SinkCommitted | None:
    """The first commit after a checkpoint whose completion is not recorded; None without one."""
    completed = {event.checkpoint for event in history.of(CheckpointCompleted)}
    commits = history.of(SinkCommitted)
    return next((each for each in commits if each.checkpoint not in completed), None)
