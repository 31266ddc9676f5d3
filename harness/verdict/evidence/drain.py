"""Whether a run was drained: everything sent was read, and everything read was committed.

The run records the drain when its waits are met. The checkpoints must agree: one that persisted
in-flight data holds records that no sink has received. So after the drain the newest checkpoint
must have persisted nothing except the headers of empty channels; of a job with a source beside
that of the load, some checkpoints since the load
(https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpointing_under_backpressure/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamquake.cluster.engines.flink.plan import channels, may_hold_records
from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, CheckpointTriggered
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.run_events import OutputSeen, RunDrained

CLEAN_CHECKPOINTS = 2
"""How many checkpoints without in-flight data the run awaits, see `drain_pending` of the engine."""


def _newest_graph(history: History) -> tuple[Mapping[str, int], Sequence[Mapping[str, str]]]:
    """Vertex -> parallelism, and the edges, of the newest job; empty where none is recorded."""
    submitted = history.of(JobSubmitted)
    if not submitted:
        return {}, ()
    graph = submitted[-1]
    return {each["id"]: int(each["parallelism"]) for each in graph.vertices}, graph.edges or ()


def not_drained(history: History) -> str | None:
    """Why the outputs may still change, or None where the run was drained."""
    if history.first(RunDrained) is None:
        waits = failed_waits(history)
        return waits[0].reason if waits else "the run ended before it was drained"
    completed = history.of(CheckpointCompleted)
    parallelism, edges = _newest_graph(history)
    width = channels(parallelism, edges)
    clean = [each for each in completed if not may_hold_records(each.persisted_bytes or 0, width)]
    newest = max(completed, key=lambda event: event.at_ns, default=None)
    if newest is None or newest in clean:
        return None
    sources = set(parallelism) - {edge["to"] for edge in edges}
    if edges and len(sources) > 1 and len(_begun_after_load(clean, history)) >= CLEAN_CHECKPOINTS:
        return None  # the records in flight are of a source that goes on after the load
    return (
        f"the newest checkpoint, {newest.checkpoint}, still held {newest.persisted_bytes:,} "
        "bytes of in-flight data"
    )


def _begun_after_load(
    completed: Iterable[CheckpointCompleted], history: History
) -> list[CheckpointCompleted]:
    """Those checkpoints that were triggered after the last record was acknowledged."""
    ended_ns = load_ended_ns(history)
    later = {
        (event.job, event.checkpoint)
        for event in history.of(CheckpointTriggered)
        if ended_ns is not None and event.at_ns > ended_ns
    }
    return [event for event in completed if (event.job, event.checkpoint) in later]


def checkpoints_stop_before_drain(history: History) -> bool:
    """Whether checkpoints are recorded until before the load ended, and none since, although the
    run was drained: a checkpoint covers what was sent last. Only the engine's reports can be
    missing then."""
    completed_ns = [event.at_ns for event in history.of(CheckpointCompleted)]
    ended_ns = load_ended_ns(history)
    if history.first(RunDrained) is None or not completed_ns or ended_ns is None:
        return False
    return max(completed_ns) < ended_ns


def output_after_drain(history: History) -> OutputSeen | None:
    """The first growth of an output after everything had been committed; None without one."""
    if (drained := history.first(RunDrained)) is None:
        return None
    later = (each for each in history.of(OutputSeen) if each.at_s > drained.at_s and each.grown)
    return next(later, None)
