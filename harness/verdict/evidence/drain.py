"""Whether a run was drained: everything sent was read, and everything read was committed.

The run records the drain when its waits are met. The checkpoints must agree: one that persisted
in-flight data holds records that no sink has received. So after the drain the newest checkpoint
must have persisted nothing except the headers of empty channels
(https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpointing_under_backpressure/).
"""

from __future__ import annotations

from streamquake.cluster.engines.flink.plan import channels, may_hold_records
from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.run_events import RunDrained


def _channels(history: History) -> int:
    """How many channels the job has; 0 where its graph is not recorded."""
    submitted = history.of(JobSubmitted)
    if not submitted:
        return 0
    graph = submitted[-1]
    parallelism = {each["id"]: int(each["parallelism"]) for each in graph.vertices}
    return channels(parallelism, graph.edges or ())


def not_drained(history: History) -> str | None:
    """Why the outputs may still change, or None where the run was drained."""
    if history.first(RunDrained) is None:
        waits = failed_waits(history)
        return waits[0].reason if waits else "the run ended before it was drained"
    completed = history.of(CheckpointCompleted)
    newest = max(completed, key=lambda event: event.at_ns, default=None)
    in_flight = 0 if newest is None else int(newest.persisted_bytes or 0)
    if newest is not None and may_hold_records(in_flight, _channels(history)):
        return (
            f"the newest checkpoint, {newest.checkpoint}, still held {in_flight:,} "
            "bytes of in-flight data"
        )
    return None


def checkpoints_stop_before_drain(history: History) -> bool:
    """Whether checkpoints are recorded until before the load ended, and none since, although the
    run was drained: a checkpoint covers what was sent last. Only the engine's reports can be
    missing then."""
    completed_ns = [event.at_ns for event in history.of(CheckpointCompleted)]
    ended_ns = load_ended_ns(history)
    if history.first(RunDrained) is None or not completed_ns or ended_ns is None:
        return False
    return max(completed_ns) < ended_ns
