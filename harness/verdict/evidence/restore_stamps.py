"""Whether the engine's own stamp of a restore agrees with what the engine reported until the
restore was observed.

The answer that reports checkpoints has the newest restore too. So checkpoints that were observed
long after the stamp, and long before the restore, show that the stamp is wrong.
"""

from __future__ import annotations

from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.reports.record.checkpoint_events import StampedCheckpointEvent
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestored

ANSWERED_NS = 5 * 10**9
"""How long an answer may take until all that it reports is recorded."""


def contradicted_stamps(history: History, clock: EngineClock) -> dict[int, str]:
    """The index of each restore whose stamp is wrong, with a message."""
    found = {}
    for restored in history.of(JobRestored):
        stamped_ns = clock.moment_ns(restored)
        earliest_ns, latest_ns = stamped_ns + ANSWERED_NS, restored.at_ns - ANSWERED_NS
        answered = [
            event.at_ns
            for event in history.of(StampedCheckpointEvent)
            if event.job == restored.job and earliest_ns < event.at_ns < latest_ns
        ]
        if answered:
            found[restored.index] = (
                f"its restore is stamped with {stamped_ns / 1e9:.1f} s, and the engine did not "
                f"report it by {max(answered) / 1e9:.1f} s"
            )
    return found
