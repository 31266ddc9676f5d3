"""Checkpoints as a history tells them: one value for each, from its trigger to its end.

Savepoints are told by the same events; `Checkpoint.savepoint` says which they are. What an older
history does not tell is None or empty, never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamquake.cluster.engines.flink.checkpoints import NO_REASON
from streamquake.harness.verdict.evidence.batches import Batch, batch_of
from streamquake.harness.verdict.evidence.engine_clock import EngineClock, clock_moved
from streamquake.reports.record.event import MICRO_BATCH, Action, Event
from streamquake.reports.record.history import History

PHASES = ("start_delay_ms", "alignment_ms", "sync_ms", "async_ms")
"""The parts of a subtask's checkpoint, in their order: until its first barrier came, until its last
one came, while it held back records, while it wrote beside its work."""
COUNTED: Mapping[str, str] = {
    "Checkpoint expired before completing": "expired",
    "Checkpoint was declined.": "declined",
    "Asynchronous task checkpoint failed": "asynchronous part failed",
    "IO-problem detected": "input or output failed",
    "Failure to finalize checkpoint": "not finalized",
}
"""Reason as in Flink's `CheckpointFailureReason` -> a word for it: the failures that are the
checkpoint's own and count as such (`CheckpointFailureManager.checkFailureCounter`). All others come
from tasks that were not running yet or any more."""
Key = tuple[Any, int, int]
"""Job, number, and how often a micro-batch of that number had been begun."""


@dataclass(frozen=True, kw_only=True)
class SubtaskCheckpoint:
    """One subtask's part of a checkpoint that it acknowledged; milliseconds and bytes."""

    vertex: str
    """The vertex's name; its id where the job's graph was not seen."""
    subtask: int
    took_ms: int
    """From the trigger to the acknowledgement."""
    phases: Mapping[str, int]
    persisted_bytes: int
    unaligned: bool
    source: bool
    """Whether no other vertex sends it barriers: its start delay is the wait for its own lock."""

    @property
    def where(self) -> str:
        return f"{self.vertex}/{self.subtask}"

    @property
    def barriers_ms(self) -> int:
        """From the trigger until its last barrier had come."""
        return self.phases["start_delay_ms"] + self.phases["alignment_ms"]

    @property
    def longest_phase(self) -> str:
        """The phase that took longest. In an unaligned checkpoint the asynchronous part lasts
        until the last barrier came, so the alignment is taken out of it."""
        own = dict(self.phases)
        if self.unaligned:
            own["async_ms"] = max(0, own["async_ms"] - own["alignment_ms"])
        return max(own, key=lambda phase: own[phase])


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint; seconds on the run's clock. `ended_s` is None while it is in progress."""

    job: Any
    number: int
    triggered_s: float
    ended_s: float | None = None
    acknowledged_s: float | None = None
    """When all of it was acknowledged, by the engine's own stamps; None where it has none, where a
    fault moved the clocks, or while it is in progress."""
    completed: bool = False
    kind: str | None = None
    """The type Flink reports at its end, such as `UNALIGNED_CHECKPOINT`."""
    reason: str = ""
    duration_ms: float | None = None
    state_bytes: int | None = None
    checkpointed_bytes: int | None = None
    persisted_bytes: int | None = None
    parts: tuple[SubtaskCheckpoint, ...] | None = None
    """The parts that were acknowledged; None where they are not told."""
    acknowledged: int = 0
    subtasks: int | None = None
    unacknowledged: int = 0
    """How many subtasks were to acknowledge it and are not recorded to have; 0 where neither the
    parts nor the progress are told."""
    missing: tuple[str, ...] = ()
    """The subtasks that had not acknowledged it at its end, as far as they are known."""
    files: Mapping[str, int] | None = None
    """The files in its folder -> their bytes, as listed soon after it completed."""
    shared: Mapping[str, int] | None = None
    """Those in the job's folder for what several checkpoints refer to, listed with its own."""
    path: str = ""
    """Where it lies, once it is completed."""
    batch: Batch | None = None
    """The committed batch that it is; None for every other checkpoint."""
    ended_query: bool | None = None
    """Whether it is a batch that its query ended over; None where that is not told."""
    contradicted: bool = False
    """Whether it is recorded both to have completed and to have failed."""

    @property
    def where(self) -> str:
        return f"batch {self.number}" if self.micro_batch else f"checkpoint {self.number}"

    @property
    def micro_batch(self) -> bool:
        """Whether it is a batch of records, read, written and committed as one."""
        return self.kind == MICRO_BATCH

    @property
    def savepoint(self) -> bool:
        return "SAVEPOINT" in (self.kind or "")

    @property
    def unaligned(self) -> bool:
        """Whether its barriers overtook records in flight, by the reported type."""
        return self.kind == "UNALIGNED_CHECKPOINT"

    @property
    def parts_kept_more(self) -> bool:
        """Whether its parts hold bytes in flight, and it is told to hold none."""
        return self.persisted_bytes == 0 and any(p.persisted_bytes > 0 for p in self.parts or ())

    @property
    def last_barrier(self) -> SubtaskCheckpoint | None:
        """The part that its last barrier reached last, or None where no part is known."""
        return max(self.parts or (), key=lambda part: part.barriers_ms, default=None)

    @property
    def failed_how(self) -> str | None:
        """The word for a failure of its own; None for every other end."""
        if self.ended_s is None or self.completed:
            return None
        if self.micro_batch:
            return "query ended" if self.ended_query else None
        return next((word for text, word in COUNTED.items() if text in self.reason), None)

    @property
    def failed_somehow(self) -> bool:
        """Whether it failed, and the record does not say of what."""
        if self.ended_s is None or self.completed:
            return False
        if self.micro_batch:
            return self.ended_query is None
        return self.reason in ("", NO_REASON)

    @property
    def slowest(self) -> SubtaskCheckpoint | None:
        """The part that took longest, or None where no part is known."""
        return max(self.parts or (), key=lambda part: part.took_ms, default=None)


def checkpoints_of(history: History) -> tuple[Checkpoint, ...]:
    """Every checkpoint and savepoint of a run, in order of their triggers."""
    keyed = _keyed(history)
    started = _last(keyed, Action.CHECKPOINT_TRIGGERED)
    acknowledged = _last(keyed, Action.CHECKPOINT_ACKNOWLEDGED)
    completed = _last(keyed, Action.CHECKPOINT_COMPLETED)
    failed = _last(keyed, Action.CHECKPOINT_FAILED)
    ended = _last(keyed, Action.CHECKPOINT_COMPLETED, Action.CHECKPOINT_FAILED)
    files = _last(keyed, Action.CHECKPOINT_FILES)
    graphs = {graph.value.get("job"): graph for graph in history.of(Action.JOB_SUBMITTED)}
    restored = [event.index for event in history.of(Action.JOB_RESTORED)]
    clock = None if clock_moved(history) else EngineClock(history)
    found = (
        _checkpoint(
            started.get(key),
            acknowledged.get(key),
            ended.get(key),
            files.get(key),
            graphs.get(key[0]),
            restored,
            clock,
            contradicted=key in completed and key in failed,
        )
        for key in {**started, **ended}
    )
    return tuple(sorted(found, key=lambda checkpoint: checkpoint.triggered_s))


def batches_of(history: History) -> tuple[Batch, ...]:
    """Every micro-batch of a run that was committed, in order."""
    found = (checkpoint.batch for checkpoint in checkpoints_of(history))
    return tuple(batch for batch in found if batch is not None)


def _keyed(history: History) -> list[tuple[Key, Event]]:
    """The events about checkpoints. A batch that was begun again has the number it had before, and
    is another one nevertheless."""
    found, started = [], Counter[tuple[Any, int]]()
    for event in history.of(
        Action.CHECKPOINT_TRIGGERED,
        Action.CHECKPOINT_ACKNOWLEDGED,
        Action.CHECKPOINT_COMPLETED,
        Action.CHECKPOINT_FAILED,
        Action.CHECKPOINT_FILES,
    ):
        name = (event.value.get("job"), event.value["checkpoint"])
        again = event.action == Action.CHECKPOINT_TRIGGERED
        started[name] += again and event.value.get("type") == MICRO_BATCH
        found.append(((*name, started[name]), event))
    return found


def _last(keyed: Iterable[tuple[Key, Event]], *actions: Action) -> dict[Key, Event]:
    """Key -> the last of its events with one of these actions."""
    return {key: event for key, event in keyed if event.action in actions}


def _checkpoint(
    started: Event | None,
    acknowledged: Event | None,
    ended: Event | None,
    files: Event | None,
    graph: Event | None,
    restored: Sequence[int],
    clock: EngineClock | None,
    *,
    contradicted: bool,
) -> Checkpoint:
    first = started or ended
    assert first is not None, "a checkpoint is known by its trigger or its end"
    about = ended.value if ended else first.value
    duration_ms = about.get("duration_ms")
    if duration_ms is not None and duration_ms < 0:
        duration_ms = None  # no time is negative, so it was not measured
    back_s = 0.0 if started else (duration_ms or 0) / 1000
    parts = _parts(about, graph)
    progress = acknowledged.value if acknowledged else {}
    return Checkpoint(
        job=about.get("job"),
        number=about["checkpoint"],
        triggered_s=first.at_s - back_s,
        ended_s=ended.at_s if ended else None,
        acknowledged_s=_acknowledged_s(ended, clock),
        completed=ended is not None and ended.action == Action.CHECKPOINT_COMPLETED,
        kind=about.get("type"),
        reason=str(about.get("reason") or "").strip(),
        duration_ms=duration_ms,
        state_bytes=about.get("state_bytes"),
        checkpointed_bytes=about.get("checkpointed_bytes"),
        persisted_bytes=about.get("persisted_bytes"),
        parts=parts,
        acknowledged=max(len(parts or ()), progress.get("acknowledged", 0)),
        subtasks=progress.get("subtasks") or len(_subtasks(graph)) or None,
        unacknowledged=_unacknowledged(parts, progress, graph),
        missing=_missing(parts, progress.get("subtasks"), graph),
        path=str(about.get("path") or ""),
        files=files.value["files"] if files else None,
        shared=files.value.get("shared") if files else None,
        batch=_batch(ended, restored),
        ended_query=about.get("own"),
        contradicted=contradicted,
    )


def _acknowledged_s(ended: Event | None, clock: EngineClock | None) -> float | None:
    """A checkpoint's own duration is that until its last acknowledgement."""
    if ended is None or clock is None:
        return None
    duration_ms = ended.value.get("duration_ms")
    if duration_ms is None or not ended.value.get("trigger_ms"):
        return None
    return clock.stamped_ns(ended, "trigger_ms") / 1e9 + float(duration_ms) / 1000


def _batch(ended: Event | None, restored: Sequence[int]) -> Batch | None:
    if ended is None or ended.value.get("type") != MICRO_BATCH:
        return None
    life = sum(index < ended.index for index in restored)
    return batch_of(ended.value, life=life, ended_s=ended.at_s)


def _parts(about: Mapping[str, Any], graph: Event | None) -> tuple[SubtaskCheckpoint, ...] | None:
    if "subtasks" not in about:
        return None
    names = {vertex["id"]: vertex["name"] for vertex in _vertices(graph)}
    # Without the edges nothing is known of who is fed, and no vertex is called a source.
    fed = (
        {edge["to"] for edge in graph.value["edges"]} if graph and "edges" in graph.value else names
    )
    return tuple(
        SubtaskCheckpoint(
            vertex=names.get(recorded["vertex"], recorded["vertex"]),
            subtask=recorded["subtask"],
            took_ms=recorded["duration_ms"],
            # Flink writes -1 for what a subtask did not measure.
            phases={phase: max(0, recorded[phase]) for phase in PHASES},
            persisted_bytes=recorded["persisted_bytes"],
            unaligned=recorded["unaligned"],
            source=recorded["vertex"] in names and recorded["vertex"] not in fed,
        )
        for recorded in about["subtasks"]
    )


def _unacknowledged(
    parts: tuple[SubtaskCheckpoint, ...] | None, progress: Mapping[str, Any], graph: Event | None
) -> int:
    """How many of those that were to acknowledge are not told of. Without progress it is known only
    of none at all: tasks that have finished need not."""
    done = max(len(parts or ()), int(progress.get("acknowledged", 0)))
    if progress:
        return max(0, int(progress.get("subtasks", done)) - done)
    return max(1, len(_subtasks(graph))) if parts == () else 0


def _missing(
    parts: tuple[SubtaskCheckpoint, ...] | None, expected: int | None, graph: Event | None
) -> tuple[str, ...]:
    """Who did not acknowledge; nothing where the graph is not that of this checkpoint."""
    everyone = _subtasks(graph)
    if parts is None or (expected is not None and expected != len(everyone)):
        return ()
    there = {part.where for part in parts}
    return tuple(subtask for subtask in everyone if subtask not in there)


def _subtasks(graph: Event | None) -> tuple[str, ...]:
    """Every subtask of the graph, named as `Part.where`."""
    return tuple(
        f"{vertex['name']}/{n}" for vertex in _vertices(graph) for n in range(vertex["parallelism"])
    )


def _vertices(graph: Event | None) -> list[Mapping[str, Any]]:
    return list(graph.value.get("vertices", ())) if graph else []
