"""Whether the other jobs of a run are recorded to have run until everything was drained."""

from __future__ import annotations

from collections.abc import Collection

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import OtherJobsSeen, RunDrained


def drained_without_others(history: History, names: Collection[str]) -> str | None:
    """A message if the run was drained, although one of its other jobs is not recorded to run then:
    what that job had not written may be missing. None where the two agree."""
    if not names or history.first(RunDrained) is None:
        return None
    seen = next((event for event in history.of(OtherJobsSeen) if event.after == "drain"), None)
    if seen is None:
        return "it was drained, and whether the other jobs ran then is not recorded"
    for name in names:
        if name not in seen.jobs:
            return f"it was drained, and whether the job {name} ran then is not recorded"
        if (reason := seen.jobs[name]) is not None:
            return f"it was drained, and the job {name} did not run then: {reason}"
    return None
