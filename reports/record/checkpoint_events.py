"""The events of checkpoints, and of micro-batches, which are checkpoints too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamquake.reports.record.event import MICRO_BATCH, Action, Event, Kind
from streamquake.reports.record.event_field import EventField
from streamquake.reports.record.job_events import JobEvent


class CheckpointEvent(JobEvent):
    """An event of one checkpoint, savepoint or micro-batch."""

    checkpoint = EventField[int]()
    """The checkpoint's number within its job."""


class StampedCheckpointEvent(CheckpointEvent):
    """An event from the engine's own report of a checkpoint, with the engine's time stamps."""

    type = EventField[str | None](None)
    """`CHECKPOINT`, `SAVEPOINT`, ... as the engine names it; `micro-batch` of a query."""
    trigger_ms = EventField[float | None](None)
    """When it was triggered, in milliseconds since the epoch; missing in old records."""

    @property
    def is_micro_batch(self) -> bool:
        return self.type == MICRO_BATCH


class CheckpointTriggered(
    StampedCheckpointEvent, action=Action.CHECKPOINT_TRIGGERED, kinds=(Kind.INVOKE,)
):
    """A checkpoint was triggered; of a query, a batch began."""


class CheckpointAcknowledged(StampedCheckpointEvent, action=Action.CHECKPOINT_ACKNOWLEDGED):
    """Some subtasks acknowledged a checkpoint."""

    acknowledged = EventField[int | None](None)
    """The number of subtasks that acknowledged it."""
    subtasks = EventField[int | None](None)
    """The number of subtasks that must acknowledge it."""
    ack_ms = EventField[float | None](None)
    """The latest acknowledgement, in milliseconds since the epoch."""


class CheckpointAllAcknowledged(StampedCheckpointEvent, action=Action.CHECKPOINT_ALL_ACKNOWLEDGED):
    """Every subtask acknowledged the checkpoint; it is not completed yet."""

    ack_ms = EventField[float | None](None)
    """The latest acknowledgement, in milliseconds since the epoch."""


class CheckpointEnd(StampedCheckpointEvent):
    """The end of a checkpoint."""

    duration_ms = EventField[float | None](None)
    """The time from the trigger to the end, in milliseconds."""
    first_ack_ms = EventField[float | None](None)
    """The first acknowledgement, in milliseconds since the epoch."""
    last_ack_ms = EventField[float | None](None)
    """The last acknowledgement, in milliseconds since the epoch."""
    subtasks = EventField[Sequence[Mapping[str, Any]] | None](None)
    """The subtasks that acknowledged, each {vertex, subtask, start_delay_ms, alignment_ms, sync_ms,
    async_ms, duration_ms, processed_bytes, persisted_bytes, unaligned, ack_ms}; missing of a
    micro-batch."""


class CheckpointCompleted(CheckpointEnd, action=Action.CHECKPOINT_COMPLETED, kinds=(Kind.OK,)):
    """A checkpoint completed; of a query, a batch was committed."""

    state_bytes = EventField[int | None](None)
    """The size of the state, in bytes."""
    checkpointed_bytes = EventField[int | None](None)
    """The size of what this checkpoint itself wrote (incremental checkpoints share the rest), in
    bytes."""
    persisted_bytes = EventField[int | None](None)
    """The size of the in-flight records that an unaligned checkpoint stored, in bytes."""
    path = EventField[str | None](None)
    """The folder of the checkpoint."""
    start_delay_ms = EventField[float | None](None)
    """The longest time that a barrier took to reach its subtask, in milliseconds."""
    alignment_ms = EventField[float | None](None)
    """The longest alignment, in milliseconds."""
    sync_ms = EventField[float | None](None)
    """The longest synchronous part, in milliseconds."""
    async_ms = EventField[float | None](None)
    """The longest asynchronous part, in milliseconds."""
    processed_bytes = EventField[int | None](None)
    """The size of the records processed during alignment, in bytes."""
    unaligned_subtasks = EventField[int | None](None)
    """The number of subtasks whose checkpoint was unaligned."""
    began_ms = EventField[float | None](None)
    """Of a micro-batch: when it began, in milliseconds since the epoch."""
    phases_ms = EventField[Mapping[str, float]]({})
    """Of a micro-batch: phase of waiting, running, committing -> milliseconds."""
    input_rows = EventField[int | None](None)
    """Of a micro-batch: the number of rows that it read."""
    offsets = EventField[Sequence[Mapping[str, Any]]](())
    """Of a micro-batch: the offsets of its sources, each {source, start, end, latest}."""
    durations_ms = EventField[Mapping[str, float]]({})
    """Of a micro-batch: Spark's name of a step -> milliseconds."""
    watermark = EventField[str | None](None)
    """Of a micro-batch: the watermark that it ran with."""
    state_rows = EventField[int | None](None)
    """Of a micro-batch: the number of rows in its state."""
    state_operators = EventField[Sequence[Mapping[str, Any]]](())
    """Of a micro-batch: what Spark reports of the state of each operator."""


class CheckpointFailed(CheckpointEnd, action=Action.CHECKPOINT_FAILED, kinds=(Kind.FAIL,)):
    """A checkpoint failed; of a query, its batch was not committed."""

    reason = EventField[str | None](None)
    """Why the checkpoint failed."""
    own = EventField[bool | None](None)
    """Of a micro-batch: whether its failure ended the query; false where the driver ended."""


class BatchStep(CheckpointEvent):
    """A step of a micro-batch."""

    step_ms = EventField[float | None](None)
    """The time of the step, in milliseconds since the epoch."""


class OffsetWritten(BatchStep, action=Action.OFFSET_WRITTEN):
    """The offsets of a micro-batch are in its log; its checkpoint is triggered."""


class BatchRunning(BatchStep, action=Action.BATCH_RUNNING):
    """The first tasks of a micro-batch were scheduled."""


class SinkWritten(BatchStep, action=Action.SINK_WRITTEN):
    """The sink has all records of a micro-batch, and its commit began."""


class CommitWritten(BatchStep, action=Action.COMMIT_WRITTEN):
    """The commit of a micro-batch is in the log. Its checkpoint is completed as soon as Spark
    reports the batch."""


class CheckpointFiles(CheckpointEvent, action=Action.CHECKPOINT_FILES):
    """The files of a completed checkpoint, listed soon after its end."""

    path = EventField[str | None](None)
    """The folder of the checkpoint."""
    files = EventField[Mapping[str, int]]()
    """The name of a file -> its size in bytes."""
    shared = EventField[Mapping[str, int] | None](None)
    """The name of each file that checkpoints share -> its size in bytes; missing in old records."""


def checkpoint_number(event: Event) -> int | None:
    """The number of the checkpoint that an event is about; None for an event of another kind."""
    number: int | None = event.value.get("checkpoint")
    return number
