"""Checkpoints as a history records them: one value per checkpoint, from its trigger to its end.

The same events record savepoints; `Checkpoint.savepoint` distinguishes them. A value that an older
history does not hold is None or empty, never zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from streamquake.cluster.engines.flink.checkpoints import NO_REASON
from streamquake.harness.verdict.evidence.batches import Batch, batch_of
from streamquake.harness.verdict.evidence.checkpoint_report import contradicted_report
from streamquake.harness.verdict.evidence.engine_clock import (
    STAMPS_S,
    EngineClock,
    clock_moved,
)
from streamquake.reports.record.checkpoint_events import (
    CheckpointAcknowledged,
    CheckpointCompleted,
    CheckpointEnd,
    CheckpointEvent,
    CheckpointFailed,
    CheckpointFiles,
    CheckpointTriggered,
    StampedCheckpointEvent,
)
from streamquake.reports.record.event import MICRO_BATCH
from streamquake.reports.record.event_field import MissingField
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestored, JobSubmitted

PHASES = ("start_delay_ms", "alignment_ms", "sync_ms", "async_ms")
"""The phases of a subtask's checkpoint, in their order: until its first barrier arrived, until its
last one arrived, while it stopped processing records, while it wrote in the background."""
ALIGNED, UNALIGNED = "CHECKPOINT", "UNALIGNED_CHECKPOINT"
"""The types that Flink reports of completed checkpoints other than savepoints."""
METADATA = "_metadata"
"""The only file in a checkpoint's folder with a fixed name."""
FAILURE_KINDS: Mapping[str, str] = {
    "Checkpoint expired before completing": "expired",
    "Checkpoint was declined.": "declined",
    "Asynchronous task checkpoint failed": "asynchronous part failed",
    "IO-problem detected": "input or output failed",
    "Failure to finalize checkpoint": "not finalized",
}
"""Reason as in Flink's `CheckpointFailureReason` -> its kind here. These failures count as caused
by the checkpoint (`CheckpointFailureManager.checkFailureCounter`); all others are of tasks that did
not run."""
E = TypeVar("E", bound=CheckpointEvent)
Key = tuple[str | None, int, int]
"""Job, number, and how many micro-batches of that number have started."""


@dataclass(frozen=True, kw_only=True)
class SubtaskCheckpoint:
    """One subtask's part of a checkpoint that it acknowledged; milliseconds and bytes."""

    vertex: str
    """The vertex's name; its id where the job's graph was not recorded."""
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
        """From the trigger until its last barrier arrived."""
        return self.phases["start_delay_ms"] + self.phases["alignment_ms"]

    @property
    def longest_phase(self) -> str:
        """The phase that took longest. In an unaligned checkpoint the asynchronous part lasts until
        the last barrier arrived, so the alignment is subtracted from it."""
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
    """When its trigger was observed; without that, its end minus its duration."""
    began_s: float
    """When it was triggered, by the engine's own stamp; `triggered_s` without one, or where a fault
    moved the clocks."""
    ended_s: float | None = None
    acknowledged_s: float | None = None
    """When the last subtask acknowledged it, by the engine's own stamps; None without stamps, where
    a fault moved the clocks, or while it is in progress."""
    completed: bool = False
    kind: str | None = None
    """The type Flink reports at its end, such as `UNALIGNED_CHECKPOINT`; that of a savepoint or a
    micro-batch also where only its trigger has it."""
    reason: str = ""
    duration_ms: float | None = None
    state_bytes: int | None = None
    checkpointed_bytes: int | None = None
    persisted_bytes: int | None = None
    longest_ms: Mapping[str, float] = field(default_factory=dict)
    """Phase -> how long it took at most in any subtask, as reported for the whole checkpoint."""
    parts: tuple[SubtaskCheckpoint, ...] | None = None
    """The parts that were acknowledged; None where they are not recorded."""
    acknowledged: int = 0
    subtasks: int | None = None
    unacknowledged: int = 0
    """How many subtasks have no recorded acknowledgement; 0 where neither the parts nor the
    progress are recorded."""
    missing: tuple[str, ...] = ()
    """The subtasks, as far as known, that had not acknowledged it at its end."""
    files: Mapping[str, int] | None = None
    """The files in its folder -> their bytes, as listed soon after it completed; of a micro-batch,
    the files of the state that are new."""
    shared: Mapping[str, int] | None = None
    """The files in the folder that several checkpoints of the job share, listed with its own."""
    path: str = ""
    """The folder in which it is stored, once it is completed."""
    batch: Batch | None = None
    """Its committed micro-batch; None for every other checkpoint."""
    ended_query: bool | None = None
    """Whether its query ended over this micro-batch; None where that is not recorded."""
    completed_and_failed: bool = False
    """Whether both ends are recorded."""
    trigger_stamps: frozenset[float] = frozenset()
    """When it was triggered by its events, epoch milliseconds: all report the same moment."""
    contradicted_report: str = ""
    """What the report of its completion contradicts in itself; empty without such a report."""
    savepoint_by: frozenset[bool] = frozenset()
    """Whether it is a savepoint by the types in its events: all report the same."""

    @property
    def where(self) -> str:
        return f"batch {self.number}" if self.micro_batch else f"checkpoint {self.number}"

    @property
    def micro_batch(self) -> bool:
        """Whether it is a micro-batch: records that are read, written and committed together."""
        return self.kind == MICRO_BATCH

    @property
    def savepoint(self) -> bool:
        return "SAVEPOINT" in (self.kind or "")

    @property
    def of_known_type(self) -> bool:
        """Whether its events agree on whether it is a savepoint."""
        return len(self.savepoint_by) < 2

    @property
    def of_known_alignment(self) -> bool:
        """Whether the reported type is that of an aligned or an unaligned checkpoint."""
        return self.kind in (ALIGNED, UNALIGNED)

    @property
    def unaligned(self) -> bool:
        """Whether its barriers overtook records in flight, by the reported type."""
        return self.kind == UNALIGNED

    @property
    def has_all_parts(self) -> bool:
        """Whether the parts of all of its subtasks are recorded."""
        return bool(self.parts) and len(self.parts or ()) == self.subtasks

    @property
    def contradiction(self) -> str:
        """What in its record cannot be true together; empty where nothing is seen. Flink takes the
        end of a completed checkpoint from its last acknowledgement (`CompletedCheckpointStats`)."""
        if self.completed_and_failed:
            return "is recorded both to have completed and to have failed"
        if len(self.trigger_stamps) > 1:
            apart_s = (max(self.trigger_stamps) - min(self.trigger_stamps)) / 1000
            return f"is recorded with triggers that are {apart_s:,.1f} s apart"
        if not self.of_known_type:
            return "is recorded as a savepoint and as another checkpoint"
        return self._contradicted_duration or self.contradicted_report

    @property
    def _contradicted_duration(self) -> str:
        if not self.completed or self.duration_ms is None:
            return ""
        slowest = self.slowest
        if slowest is not None and self._differs(self.duration_ms, slowest.took_ms):
            return (
                f"is recorded to have taken {self.duration_ms:,.0f} ms, and its slowest subtask "
                f"{slowest.took_ms:,} ms"
            )
        early_s = (self.acknowledged_s or 0.0) - (self.ended_s or 0.0)
        if early_s > STAMPS_S and not self.micro_batch:
            return f"was seen to complete {early_s:,.1f} s before its last acknowledgement"
        return ""

    @property
    def parts_persisted_bytes(self) -> int:
        """The in-flight bytes of the parts that are recorded."""
        return sum(part.persisted_bytes for part in self.parts or ())

    @property
    def parts_persisted_otherwise(self) -> bool:
        """Whether the in-flight bytes of the whole are not those of its parts."""
        whole = self.persisted_bytes
        return whole is not None and self._differs(whole, self.parts_persisted_bytes)

    def _differs(self, whole: float, of_parts: float) -> bool:
        """Whether a figure of the whole is not that of its parts. With parts missing, it may be
        larger."""
        return whole < of_parts or (self.has_all_parts and whole > of_parts)

    @property
    def longer_phases(self) -> Mapping[str, float]:
        """Phase -> its longest duration, where no recorded part has it: a part is missing, or one
        of both is wrong."""
        return {
            phase: took_ms
            for phase, took_ms in self.longest_ms.items()
            if self.parts and took_ms > max(part.phases[phase] for part in self.parts)
        }

    @property
    def last_barrier(self) -> SubtaskCheckpoint | None:
        """The subtask whose last barrier arrived last, or None where no subtask is known."""
        return max(self.parts or (), key=lambda part: part.barriers_ms, default=None)

    @property
    def barriers_at_most_ms(self) -> float | None:
        """How long at most it took from its trigger until its last barrier arrived. Where not all
        parts are recorded, it had arrived when the checkpoint completed, possibly long before:
        writing the state may take longer than the barriers."""
        last = self.last_barrier
        if last is not None and self.has_all_parts:
            return last.barriers_ms
        return self.duration_ms

    @property
    def failure_kind(self) -> str | None:
        """The kind of a failure that the checkpoint itself caused; None for every other end."""
        if self.ended_s is None or self.completed:
            return None
        if self.micro_batch:
            return "query ended" if self.ended_query else None
        return next((word for text, word in FAILURE_KINDS.items() if text in self.reason), None)

    @property
    def failed_without_reason(self) -> bool:
        """Whether it failed for a reason that the record does not have."""
        if self.ended_s is None or self.completed:
            return False
        if self.micro_batch:
            return self.ended_query is None
        return self.reason in ("", NO_REASON)

    @property
    def slowest(self) -> SubtaskCheckpoint | None:
        """The subtask that took longest, or None where no subtask is known."""
        return max(self.parts or (), key=lambda part: part.took_ms, default=None)


def checkpoints_of(history: History) -> tuple[Checkpoint, ...]:
    """Every checkpoint and savepoint of a run, in order of their triggers."""
    keyed = _events_by_key(history)
    started = _last(keyed, CheckpointTriggered)
    acknowledged = _last(keyed, CheckpointAcknowledged)
    completed, failed = _last(keyed, CheckpointCompleted), _last(keyed, CheckpointFailed)
    ended = _last(keyed, CheckpointEnd)
    files = _last(keyed, CheckpointFiles)
    stamps: dict[Key, set[float]] = defaultdict(set)
    for key, event in keyed:
        if isinstance(event, StampedCheckpointEvent) and event.trigger_ms is not None:
            stamps[key].add(event.trigger_ms)
    graphs = {graph.job: graph for graph in history.of(JobSubmitted)}
    restored = [event.index for event in history.of(JobRestored)]
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
            completed_and_failed=key in completed and key in failed,
            trigger_stamps=frozenset(stamps[key]),
        )
        for key in {**started, **ended}
    )
    return tuple(sorted(found, key=lambda checkpoint: checkpoint.triggered_s))


def batches_of(history: History) -> tuple[Batch, ...]:
    """Every micro-batch of a run that was committed, in order."""
    found = (checkpoint.batch for checkpoint in checkpoints_of(history))
    return tuple(batch for batch in found if batch is not None)


def _events_by_key(history: History) -> list[tuple[Key, CheckpointEvent]]:
    """The events of checkpoints by key. A micro-batch that was started again keeps its number but
    is another checkpoint."""
    found: list[tuple[Key, CheckpointEvent]] = []
    started = Counter[tuple[str | None, int]]()
    for event in history.of(
        CheckpointTriggered,
        CheckpointAcknowledged,
        CheckpointCompleted,
        CheckpointFailed,
        CheckpointFiles,
    ):
        name = (event.job, event.checkpoint)
        started[name] += isinstance(event, CheckpointTriggered) and event.is_micro_batch
        found.append(((*name, started[name]), event))
    return found


def _last(keyed: Iterable[tuple[Key, CheckpointEvent]], kind: type[E]) -> dict[Key, E]:
    """Key -> its last event of a class."""
    return {key: event for key, event in keyed if isinstance(event, kind)}


def _checkpoint(
    started: CheckpointTriggered | None,
    acknowledged: CheckpointAcknowledged | None,
    ended: CheckpointEnd | None,
    files: CheckpointFiles | None,
    graph: JobSubmitted | None,
    restored: Sequence[int],
    clock: EngineClock | None,
    *,
    completed_and_failed: bool,
    trigger_stamps: frozenset[float],
) -> Checkpoint:
    first = started or ended
    assert first is not None, "a checkpoint is known by its trigger or its end"
    began_s = _began_s(first, clock)
    latest = ended or first
    kind = _kind(started, latest)
    completed = ended if isinstance(ended, CheckpointCompleted) else None
    listing = files if kind == MICRO_BATCH or _is_whole(files, completed) else None
    failed = ended if isinstance(ended, CheckpointFailed) else None
    duration_ms = ended.duration_ms if ended else None
    if duration_ms is not None and duration_ms < 0:
        duration_ms = None  # a negative duration means that it was not measured
    triggered_s = first.at_s - (0.0 if started else (duration_ms or 0) / 1000)
    parts = _parts(ended, graph)
    done = max(len(parts or ()), (acknowledged.acknowledged or 0) if acknowledged else 0)
    expected = acknowledged.subtasks if acknowledged else None
    recorded = [event for event in (started, acknowledged, ended) if event is not None]
    return Checkpoint(
        trigger_stamps=trigger_stamps,
        contradicted_report=(
            ""
            if completed is None or kind == MICRO_BATCH
            else contradicted_report(completed, acknowledged, graph, clocks_moved=clock is None)
        ),
        savepoint_by=frozenset("SAVEPOINT" in e.type for e in recorded if e.type is not None),
        job=latest.job,
        number=latest.checkpoint,
        triggered_s=triggered_s,
        began_s=triggered_s if began_s is None else began_s,
        ended_s=ended.at_s if ended else None,
        acknowledged_s=_acknowledged_s(ended, clock),
        completed=completed is not None,
        kind=kind,
        reason=(failed.reason or "").strip() if failed else "",
        duration_ms=duration_ms,
        state_bytes=completed.state_bytes if completed else None,
        checkpointed_bytes=completed.checkpointed_bytes if completed else None,
        persisted_bytes=completed.persisted_bytes if completed else None,
        longest_ms=_longest_ms(completed),
        parts=parts,
        acknowledged=done,
        subtasks=expected or len(_subtasks(graph)) or None,
        unacknowledged=_unacknowledged(parts, acknowledged, graph),
        missing=_missing(parts, expected, graph),
        path=(completed.path or "") if completed else "",
        files=listing.files if listing else None,
        shared=listing.shared if listing else None,
        batch=_batch(completed, restored) if kind == MICRO_BATCH else None,
        ended_query=failed.own if failed else None,
        completed_and_failed=completed_and_failed,
    )


def _kind(
    started: CheckpointTriggered | None, latest: CheckpointTriggered | CheckpointEnd
) -> str | None:
    """The type in its latest event. Where that has none, the type at its trigger, except for an
    ordinary checkpoint: it may have become unaligned since."""
    if latest.type is None and started is not None and started.type != ALIGNED:
        return started.type
    return latest.type


def _began_s(first: CheckpointTriggered | CheckpointEnd, clock: EngineClock | None) -> float | None:
    """The moment of the trigger by the stamp in one of its events."""
    if clock is None or not first.trigger_ms:
        return None
    return clock.stamped_ns(first, first.trigger_ms) / 1e9


def _acknowledged_s(ended: CheckpointEnd | None, clock: EngineClock | None) -> float | None:
    """The moment of the last acknowledgement: a checkpoint's own duration ends with it."""
    if ended is None or ended.duration_ms is None or (began_s := _began_s(ended, clock)) is None:
        return None
    return began_s + ended.duration_ms / 1000


def _batch(completed: CheckpointCompleted | None, restored: Sequence[int]) -> Batch | None:
    if completed is None:
        return None
    return batch_of(completed, driver=sum(index < completed.index for index in restored))


def _is_whole(files: CheckpointFiles | None, completed: CheckpointCompleted | None) -> bool:
    """Whether a listing is of all files of a checkpoint: it is of the checkpoint's folder, and has
    the metadata, which every completed checkpoint has until its files are deleted."""
    if files is None or METADATA not in files.files:
        return False
    return not is_elsewhere(completed.path if completed else None, files.path)


def is_elsewhere(one: str | None, other: str | None) -> bool:
    """Whether two addresses, where both are known, have different paths. One may leave out the file
    system."""
    return bool(one and other) and urlsplit(one).path != urlsplit(other).path


def _parts(
    ended: CheckpointEnd | None, graph: JobSubmitted | None
) -> tuple[SubtaskCheckpoint, ...] | None:
    """What the subtasks report of a checkpoint; None where that is not recorded. Raises
    MissingField where a field is missing in a report."""
    if ended is None or ended.subtasks is None:
        return None
    names = {vertex["id"]: vertex["name"] for vertex in _vertices(graph)}
    # Without edges the receiving vertices are unknown, and no vertex counts as a source.
    fed = {edge["to"] for edge in graph.edges} if graph and graph.edges is not None else names
    try:
        return tuple(_part(recorded, names, fed) for recorded in ended.subtasks)
    except KeyError as missing:
        raise MissingField(ended, str(missing.args[0])) from None


def _part(
    recorded: Mapping[str, Any], names: Mapping[str, str], fed: Collection[str]
) -> SubtaskCheckpoint:
    """What a subtask reports. Raises KeyError where a field is missing."""
    return SubtaskCheckpoint(
        vertex=names.get(recorded["vertex"], recorded["vertex"]),
        subtask=recorded["subtask"],
        took_ms=recorded["duration_ms"],
        # Flink writes -1 for a phase that a subtask did not measure.
        phases={phase: max(0, recorded[phase]) for phase in PHASES},
        persisted_bytes=recorded["persisted_bytes"],
        unaligned=recorded["unaligned"],
        source=recorded["vertex"] in names and recorded["vertex"] not in fed,
    )


def _longest_ms(completed: CheckpointCompleted | None) -> dict[str, float]:
    """Phase -> how long it took at most in any subtask, where that is recorded."""
    if completed is None:
        return {}
    longest = (
        completed.start_delay_ms,
        completed.alignment_ms,
        completed.sync_ms,
        completed.async_ms,
    )
    return {phase: ms for phase, ms in zip(PHASES, longest, strict=True) if ms is not None}


def _unacknowledged(
    parts: tuple[SubtaskCheckpoint, ...] | None,
    acknowledged: CheckpointAcknowledged | None,
    graph: JobSubmitted | None,
) -> int:
    """How many expected acknowledgements are not recorded. Without recorded progress only the case
    of no acknowledgement at all is certain: finished tasks need not acknowledge."""
    if acknowledged is not None:
        done = max(len(parts or ()), acknowledged.acknowledged or 0)
        expected = done if acknowledged.subtasks is None else acknowledged.subtasks
        return max(0, expected - done)
    return max(1, len(_subtasks(graph))) if parts == () else 0


def _missing(
    parts: tuple[SubtaskCheckpoint, ...] | None, expected: int | None, graph: JobSubmitted | None
) -> tuple[str, ...]:
    """The subtasks that did not acknowledge; empty where the graph is not that of this
    checkpoint."""
    all_subtasks = _subtasks(graph)
    if parts is None or (expected is not None and expected != len(all_subtasks)):
        return ()
    present = {part.where for part in parts}
    return tuple(subtask for subtask in all_subtasks if subtask not in present)


def _subtasks(graph: JobSubmitted | None) -> tuple[str, ...]:
    """Every subtask of the graph, named as `Part.where`."""
    return tuple(
        f"{vertex['name']}/{n}" for vertex in _vertices(graph) for n in range(vertex["parallelism"])
    )


def _vertices(graph: JobSubmitted | None) -> list[Mapping[str, Any]]:
    return list(graph.vertices) if graph else []
