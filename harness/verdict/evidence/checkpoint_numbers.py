"""Numbers, stamps and folders of a job's checkpoints that cannot be true together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, clock_moved
from streamquake.reports.record.checkpoint_events import (
    CheckpointAcknowledged,
    CheckpointAllAcknowledged,
    CheckpointCompleted,
    StampedCheckpointEvent,
)
from streamquake.reports.record.history import History

UNKNOWN_MS = (-1, 0)
"""Flink's values of a stamp that it does not have."""


def contradicted_checkpoints(history: History) -> Iterator[str]:
    """A message for each checkpoint of which the number, an acknowledgement or the folder is
    impossible beside the others of its job; by stamps only where no fault moved the clocks.
    Micro-batches are numbered and stored otherwise."""
    events: dict[str | None, list[StampedCheckpointEvent]] = {}
    for event in history.of(StampedCheckpointEvent):
        if event.type is not None and not event.is_micro_batch:
            events.setdefault(event.job, []).append(event)
    for of_job in events.values():
        for event in of_job:
            if event.checkpoint < 1:
                yield f"`{event.action}` is recorded of checkpoint {event.checkpoint}"
        if not clock_moved(history):
            yield from _acknowledged_early(of_job)
            yield from _out_of_sequence(of_job)
        yield from _stored_elsewhere(of_job)


def _out_of_sequence(events: Sequence[StampedCheckpointEvent]) -> Iterator[str]:
    """A message for each number that is not between those of the checkpoints triggered just before
    and after it. A job numbers its checkpoints in the order of their triggers; one whose numbers
    begin again is not judged there."""
    triggers = sorted({(e.trigger_ms, e.checkpoint) for e in events if e.trigger_ms})
    neighbours = zip(pairwise(triggers), triggers[2:], strict=False)
    for ((_, before), (_, number)), (_, after) in neighbours:
        if before < after and not before < number < after:
            yield f"checkpoint {number} was triggered between checkpoints {before} and {after}"


def _acknowledged_early(events: Sequence[StampedCheckpointEvent]) -> Iterator[str]:
    """The JobManager stamps the trigger and the acknowledgements."""
    for event in events:
        if not isinstance(event, CheckpointAcknowledged | CheckpointAllAcknowledged):
            continue
        if event.ack_ms in UNKNOWN_MS or event.ack_ms is None or not event.trigger_ms:
            continue
        if (early_s := (event.trigger_ms - event.ack_ms) / 1000) > STAMPS_S:
            yield (
                f"checkpoint {event.checkpoint} is recorded as acknowledged {early_s:,.1f} s "
                "before its trigger"
            )


def _stored_elsewhere(events: Sequence[StampedCheckpointEvent]) -> Iterator[str]:
    """A message for each checkpoint that is not in a folder of its number beside the others, where
    any is in such a folder: the storage names all of one job alike. Savepoints have a folder of
    their own."""
    folders: dict[str, int] = {}
    other: list[int] = []
    for event in events:
        if not isinstance(event, CheckpointCompleted) or not event.path:
            continue
        if "SAVEPOINT" in (event.type or ""):
            continue
        if event.path.endswith(suffix := f"/chk-{event.checkpoint}"):
            folders.setdefault(event.path.removesuffix(suffix), event.checkpoint)
        else:
            other.append(event.checkpoint)
    wrong = [*other, *list(folders.values())[1:]] if folders else []
    for number in wrong:
        yield f"the folder of checkpoint {number} is not beside that of the others, by its number"
