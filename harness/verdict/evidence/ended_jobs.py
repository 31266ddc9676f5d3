"""Jobs that are recorded to end, and to go on afterwards: one of both is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.reports.record.checkpoint_events import CheckpointTriggered
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobEnded, JobRunning

OBSERVED_LATER_S = 3.0
"""The end of a job is observed by another request than its checkpoints, so that one that was
triggered before may be recorded later."""


def contradicted_ends(history: History) -> Iterator[str]:
    """A message for each job that runs, or triggers a checkpoint, after its terminal state."""
    for end in history.of(JobEnded):
        later = [
            event
            for event in history.of(JobRunning, CheckpointTriggered)
            if event.index > end.index
            and event.job is not None
            and event.job == end.job
            and event.at_s > end.at_s + OBSERVED_LATER_S
        ]
        if later:
            yield (
                f"the job {end.state} at {end.at_s:.1f} s, and is recorded to go on at "
                f"{later[0].at_s:.1f} s"
            )
