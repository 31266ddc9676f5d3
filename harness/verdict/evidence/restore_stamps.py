"""Whether the engine's own stamp of a restore agrees with what the engine reported until the
restore was observed.

The answer that reports checkpoints has the newest restore too. So checkpoints that were observed
long after the stamp, and long before the restore, show that the stamp is wrong. So does a failure
that has no restore of its own, and follows the stamp of one that had no failure and was observed
after it. And a checkpoint is restored only after it was acknowledged.
"""

from __future__ import annotations

from streamquake.harness.verdict.evidence.engine_clock import STAMP_NS, EngineClock, clock_moved
from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointTriggered,
    StampedCheckpointEvent,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    FAILURES,
    JobRestored,
    JobRunning,
)

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
        elif (failed_ns := _failed_after(restored, history, clock)) is not None:
            found[restored.index] = (
                f"its restore is stamped with {stamped_ns / 1e9:.1f} s, before the failure at "
                f"{failed_ns / 1e9:.1f} s, and no failure was seen before it"
            )
        elif early := _before_its_checkpoint(restored, history, clock):
            found[restored.index] = early
    return found


def _before_its_checkpoint(restored: JobRestored, history: History, clock: EngineClock) -> str:
    """A message if a restore is stamped before its checkpoint was triggered, or acknowledged; empty
    where it is not, or where a fault moved the clocks."""
    if clock_moved(history):
        return ""
    triggered_ns = [
        clock.moment_ns(event)
        for event in history.of(CheckpointTriggered)
        if event.checkpoint == restored.checkpoint
    ]
    acknowledged_ns = [
        clock.stamped_ns(event, event.trigger_ms + event.duration_ms)
        for event in history.of(CheckpointCompleted)
        if event.checkpoint == restored.checkpoint
        and event.trigger_ms
        and event.duration_ms is not None
    ]
    for what, moments_ns in (("triggered", triggered_ns), ("acknowledged", acknowledged_ns)):
        early_ns = min(moments_ns, default=0) - clock.moment_ns(restored)
        if early_ns > STAMP_NS:
            return (
                f"checkpoint {restored.checkpoint} was restored {early_ns / 1e9:.1f} s before it "
                f"was {what}"
            )
    return ""


def _failed_after(restored: JobRestored, history: History, clock: EngineClock) -> int | None:
    """When the job failed between the stamp of a restore and its observation, if that restore had
    no failure, and that failure no restore: then the two belong together. Of a failure long after
    the stamp that is not known."""
    steps = [e for e in history.of(*FAILURES, JobRestored, JobRunning) if e.job == restored.job]
    steps.sort(key=clock.moment_ns)
    place = steps.index(restored)
    before, after = steps[:place], steps[place + 1 :]
    if (
        not after
        or not isinstance(after[0], FAILURES)
        or (before and isinstance(before[-1], FAILURES))
    ):
        return None
    failed_ns = clock.moment_ns(after[0])
    latest_ns = min(restored.at_ns, clock.moment_ns(restored) + ANSWERED_NS)
    ended = next((each for each in after if not isinstance(each, FAILURES)), None)
    return None if failed_ns > latest_ns or isinstance(ended, JobRestored) else failed_ns
