"""Restarts of a job that were counted and are not in the record."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestarting


def unobserved_restarts(history: History, after_ns: int = 0) -> Iterator[str]:
    """A message for each restart from a moment on before which others were counted and not
    observed. Another JobManager begins to count anew."""
    counted: dict[str | None, int] = {}
    for event in history.of(JobRestarting):
        if event.restart is None:
            continue
        before = counted.get(event.job, 0)
        if event.restart > before + 1 and event.at_ns >= after_ns:
            seen = f"{before} had been observed before"
            yield f"{event.restart} restarts were counted by {event.at_s:.1f} s, {seen}"
        counted[event.job] = event.restart
