"""Observed checkpoints: triggered, acknowledged, completed, failed; restores.

The JobManager's whole list is polled; changes since the last poll become events. So a checkpoint
that began and ended between two polls still produces all its events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.cluster.engines.observation import Observation
from streamquake.reports.record.event import Action
from streamquake.topologies.errors import root_cause

Document = Mapping[str, Any]
NO_REASON = "no reason given"
"""The reason of a failed checkpoint when Flink reports none."""


class CheckpointWatch:
    """Remembers the observed checkpoints of one job."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._acknowledged: dict[int, int] = {}
        self._ended: set[int] = set()
        self._restored_at_ms = 0

    def poll(self, document: Document) -> Iterator[Observation]:
        """The new events in an answer of `GET /jobs/:job/checkpoints`, oldest first."""
        for checkpoint in reversed(document["history"]):
            if checkpoint["id"] not in self._ended:
                yield from self._progress(checkpoint)
        yield from self._restored((document.get("latest") or {}).get("restored"))

    def _progress(self, checkpoint: Document) -> Iterator[Observation]:
        number = checkpoint["id"]
        about = {
            "job": self._job,
            "checkpoint": number,
            "type": checkpoint["checkpoint_type"],
            "trigger_ms": checkpoint["trigger_timestamp"],
        }
        if number not in self._acknowledged:
            self._acknowledged[number] = 0
            yield Observation(action=Action.CHECKPOINT_TRIGGERED, value=about)
        if checkpoint["num_acknowledged_subtasks"] > self._acknowledged[number]:
            self._acknowledged[number] = checkpoint["num_acknowledged_subtasks"]
            yield from _acknowledged(about, checkpoint)
        if checkpoint["status"] in ("COMPLETED", "FAILED"):
            self._ended.add(number)
            yield (
                _completed(about, checkpoint)
                if checkpoint["status"] == "COMPLETED"
                else (_failed(about, checkpoint))
            )

    def _restored(self, restored: Document | None) -> Iterator[Observation]:
        if restored is None or restored["restore_timestamp"] <= self._restored_at_ms:
            return
        self._restored_at_ms = restored["restore_timestamp"]
        yield Observation(
            action=Action.JOB_RESTORED,
            value={
                "job": self._job,
                "checkpoint": restored["id"],
                "restored_at_ms": restored["restore_timestamp"],
                "path": restored.get("external_path"),
            },
        )


def phases(details: Mapping[str, Document]) -> dict[str, Any]:
    """The times of a completed checkpoint's phases, from the subtasks of each vertex.

    `details` holds `GET …/checkpoints/details/:c/subtasks/:vertex` by vertex. The figures are the
    slowest subtask's, in milliseconds, and bytes summed.
    """
    subtasks = [
        subtask
        for vertex in details.values()
        for subtask in vertex["subtasks"]
        if subtask["status"] == "completed"
    ]
    return {
        "start_delay_ms": max((s["start_delay"] for s in subtasks), default=0),
        "alignment_ms": max((s["alignment"]["duration"] for s in subtasks), default=0),
        "sync_ms": max((s["checkpoint"]["sync"] for s in subtasks), default=0),
        "async_ms": max((s["checkpoint"]["async"] for s in subtasks), default=0),
        "processed_bytes": sum(s["alignment"]["processed"] for s in subtasks),
        "unaligned_subtasks": sum(bool(s["unaligned_checkpoint"]) for s in subtasks),
    }


def subtasks_of(details: Mapping[str, Document]) -> list[dict[str, Any]]:
    """The phases of each subtask that acknowledged a checkpoint, in milliseconds, and the in-flight
    bytes that it processed or persisted; from the same answers as `phases`."""
    return [
        {
            "vertex": vertex,
            "subtask": found["index"],
            "start_delay_ms": found["start_delay"],
            "alignment_ms": found["alignment"]["duration"],
            "sync_ms": found["checkpoint"]["sync"],
            "async_ms": found["checkpoint"]["async"],
            "duration_ms": found["end_to_end_duration"],
            "processed_bytes": found["alignment"]["processed"],
            "persisted_bytes": found["alignment"]["persisted"],
            "unaligned": bool(found["unaligned_checkpoint"]),
            "ack_ms": found["ack_timestamp"],
        }
        for vertex, answer in details.items()
        for found in answer["subtasks"]
        if found["status"] == "completed"
    ]


def acknowledged(details: Mapping[str, Document]) -> dict[str, int]:
    """When the first and the last subtask acknowledged a checkpoint that has ended, epoch
    milliseconds; from the same answers as `phases`. Empty when none did."""
    stamps = [
        subtask["ack_timestamp"]
        for vertex in details.values()
        for subtask in vertex["subtasks"]
        if subtask["status"] == "completed"
    ]
    return {"first_ack_ms": min(stamps), "last_ack_ms": max(stamps)} if stamps else {}


def _acknowledged(about: Document, checkpoint: Document) -> Iterator[Observation]:
    done, of = checkpoint["num_acknowledged_subtasks"], checkpoint["num_subtasks"]
    stamped = {**about, "ack_ms": checkpoint.get("latest_ack_timestamp")}
    yield Observation(
        action=Action.CHECKPOINT_ACKNOWLEDGED,
        value={**stamped, "acknowledged": done, "subtasks": of},
    )
    if done == of:
        yield Observation(action=Action.CHECKPOINT_ALL_ACKNOWLEDGED, value=stamped)


def _completed(about: Document, checkpoint: Document) -> Observation:
    return Observation(
        action=Action.CHECKPOINT_COMPLETED,
        value={
            **about,
            "duration_ms": checkpoint["end_to_end_duration"],
            "state_bytes": checkpoint["state_size"],
            "checkpointed_bytes": checkpoint["checkpointed_size"],
            "persisted_bytes": checkpoint["persisted_data"],
            "path": checkpoint.get("external_path"),
        },
    )


def _failed(about: Document, checkpoint: Document) -> Observation:
    reason = root_cause(checkpoint.get("failure_message") or "") or NO_REASON
    return Observation(
        action=Action.CHECKPOINT_FAILED,
        value={**about, "reason": reason, "duration_ms": checkpoint["end_to_end_duration"]},
        error=reason,
    )
