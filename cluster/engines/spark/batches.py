"""Observed micro-batches, recorded as checkpoints: a batch is triggered by its entry in the offset
log and completed by its entry in the commit log.

If a batch's first job starts before a new entry in the offset log, that job triggers it. This
happens for a batch that a restarted driver runs again (its entry exists already), in real-time mode
(the entry is written at the end) and with asynchronous progress tracking (at any time or never). A
batch that was not committed when its driver or query ended has failed; the restarted driver runs it
again with the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamquake.cluster.engines.observation import Observation
from streamquake.cluster.engines.spark.driver_listener import Entry
from streamquake.reports.record.event import MICRO_BATCH, Action


@dataclass
class RunningBatch:
    """A batch in progress: the epoch ms of its steps, 0 for a step that it has not reached."""

    number: int
    trigger_ms: int
    running_ms: int = 0
    written_ms: int = 0
    committed_ms: int = 0


@dataclass
class BatchWatch:
    """Remembers the batches of one query that are in progress."""

    job: str
    _begun: dict[int, RunningBatch] = field(default_factory=dict)

    def poll(self, entry: Entry) -> Iterator[Observation]:
        """The new events in an entry of the driver's listener."""
        match entry["what"]:
            case "offset written":
                if entry["batch"] not in self._begun:
                    yield from self._begin(entry)
                yield self._step(Action.OFFSET_WRITTEN, entry)
            case "job":
                yield from self._run(entry)
            case "sink written":
                if (batch := self._begun.get(entry["batch"])) is not None:
                    batch.written_ms = entry["ms"]
                    yield self._step(Action.SINK_WRITTEN, entry)
                    value = {**self._about(batch), "ack_ms": entry["ms"]}
                    yield Observation(action=Action.CHECKPOINT_ALL_ACKNOWLEDGED, value=value)
            case "commit written":
                if (batch := self._begun.get(entry["batch"])) is not None:
                    batch.committed_ms = entry["ms"]
                    yield self._step(Action.COMMIT_WRITTEN, entry)
            case "progress":
                yield from self._progress(entry["progress"])

    def fail_running(self, reason: str, *, own: bool) -> Iterator[Observation]:
        """The query or its driver has ended: a batch in progress has failed unless it was
        committed. `own` is True when the query itself ended, with this reason."""
        for batch in self._begun.values():
            if batch.committed_ms:
                yield self._completed(batch, {})
                continue
            value = {**self._about(batch), "reason": reason, "own": own}
            yield Observation(action=Action.CHECKPOINT_FAILED, value=value, error=reason)
        self._begun = {}

    def _begin(self, entry: Entry) -> Iterator[Observation]:
        batch = RunningBatch(number=entry["batch"], trigger_ms=entry["ms"])
        self._begun[batch.number] = batch
        yield Observation(action=Action.CHECKPOINT_TRIGGERED, value=self._about(batch))

    def _run(self, entry: Entry) -> Iterator[Observation]:
        if entry["batch"] not in self._begun:
            yield from self._begin(entry)
        batch = self._begun[entry["batch"]]
        if not batch.running_ms:
            batch.running_ms = entry["ms"]
            yield self._step(Action.BATCH_RUNNING, entry)

    def _progress(self, report: Mapping[str, Any]) -> Iterator[Observation]:
        batch = self._begun.pop(report["batchId"], None)
        if batch is not None:
            yield self._completed(batch, figures(report))

    def _completed(self, batch: RunningBatch, more: Mapping[str, Any]) -> Observation:
        written_ms = batch.written_ms or _done_ms(more) or batch.trigger_ms
        end_ms = batch.committed_ms or written_ms
        running_ms = batch.running_ms or written_ms
        value = {
            **self._about(batch),
            "first_ack_ms": written_ms,
            "last_ack_ms": written_ms,
            "duration_ms": end_ms - batch.trigger_ms,
            "phases_ms": {
                "waiting": running_ms - batch.trigger_ms,
                "running": written_ms - running_ms,
                "committing": end_ms - written_ms,
            },
            **more,
        }
        return Observation(action=Action.CHECKPOINT_COMPLETED, value=value)

    def _about(self, batch: RunningBatch) -> dict[str, Any]:
        return {
            "job": self.job,
            "checkpoint": batch.number,
            "type": MICRO_BATCH,
            "trigger_ms": batch.trigger_ms,
        }

    def _step(self, action: Action, entry: Entry) -> Observation:
        value = {"job": self.job, "checkpoint": entry["batch"], "step_ms": entry["ms"]}
        return Observation(action=action, value=value)


def figures(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures in Spark's progress report of a batch: input rows, offsets, durations by phase,
    and the size of its state."""
    operators = report.get("stateOperators") or ()
    return {
        "began_ms": round(datetime.fromisoformat(report["timestamp"]).timestamp() * 1000),
        "input_rows": report["numInputRows"],
        "offsets": [
            {
                "source": s["description"],
                "start": s.get("startOffset"),
                "end": s.get("endOffset"),
                "latest": s.get("latestOffset"),
            }
            for s in report["sources"]
        ],
        "durations_ms": dict(report["durationMs"]),
        "watermark": (report.get("eventTime") or {}).get("watermark"),
        "state_rows": sum(o["numRowsTotal"] for o in operators),
        "state_bytes": sum(
            _metric(o, "rocksdbSstFileSize", o["memoryUsedBytes"]) for o in operators
        ),
        "checkpointed_bytes": sum(_metric(o, "rocksdbBytesCopied", 0) for o in operators),
        "state_operators": [
            {
                "name": o["operatorName"],
                "rows": o["numRowsTotal"],
                "updated": o["numRowsUpdated"],
                "removed": o["numRowsRemoved"],
                "commit_ms": o["commitTimeMs"],
                "custom": o.get("customMetrics", {}),
            }
            for o in operators
        ],
    }


def _done_ms(more: Mapping[str, Any]) -> int:
    """When a batch ended according to Spark's progress report; used without a commit log entry."""
    return int(more["began_ms"] + more["durations_ms"]["triggerExecution"]) if more else 0


def _metric(operator: Mapping[str, Any], name: str, otherwise: int) -> int:
    return int(operator.get("customMetrics", {}).get(name, otherwise))
