"""The scope of a failover's possible loss: for each restart of a subtask, its partition and the
records sent between the checkpoint that it began from and the moment it ran again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from streamquake.harness.verdict.evidence.engine_clock import EngineClock
from streamquake.harness.verdict.evidence.sent_times import (
    SentRange,
    recorded_between,
    sent_ranges_of,
)
from streamquake.harness.verdict.evidence.task_restarts import (
    RAN,
    Subtask,
    SubtaskHistory,
    restarts_of_subtasks,
    restarts_since_first_run,
)
from streamquake.reports.record.checkpoint_events import (
    CheckpointAllAcknowledged,
    CheckpointCompleted,
    CheckpointEnd,
    CheckpointEvent,
    CheckpointTriggered,
)
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.topologies.errors import ErrorKind, StreamquakeError

WRITERS = ("Writer", "Sink")
"""Flink's names for operators that write, in the order of the search."""


class LossScopeUnknown(StreamquakeError, LookupError):
    """The scope of the possible loss is not known; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class LossScope:
    """The scope of the possible loss by one restart of one subtask. Without partitions the fault
    restarted no writing subtask."""

    partitions: frozenset[int]
    injected_ns: int
    """When its fault was injected; for a restart before every fault, the first one."""
    start_ns: int
    end_ns: int
    first: int
    last: int
    """Records by index, both included, that were sent between start and end."""

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, kw_only=True)
class Restart:
    """A subtask began anew, from the last checkpoint that had completed by then, and ran again."""

    subtask: int
    began_ns: int
    ran_ns: int


def scopes_of(
    history: History, vertex: str | None, partitions: int, slack_s: float, spread: bool = False
) -> tuple[LossScope, ...]:
    """The scopes of each fault that took effect, and of subtasks that restarted by themselves
    before. Raises LossScopeUnknown.

    A fault that restarted only subtasks that do not write has an empty scope: `vertex` may name a
    vertex whose subtasks share the writers' numbers, or with `spread` one whose records go to every
    writer.
    """
    injected = history.of(FaultInEffect)
    if not injected:
        raise LossScopeUnknown("no fault took effect, so nothing may be lost")
    writer = _writer(history, vertex)
    clock = EngineClock(history)
    moments = sorted(event.start_ns for event in injected)
    slack_ns = round(slack_s * 1e9)
    sent = sent_ranges_of(history)

    def scope_of(injected_ns: int, restart: Restart) -> LossScope:
        return _scope(
            sent,
            injected_ns,
            frozenset(range(partitions) if spread else {restart.subtask % partitions}),
            _checkpoint_ns(history, clock, restart.began_ns) - slack_ns,
            restart.ran_ns + slack_ns,
        )

    scopes: list[LossScope] = []
    for injected_ns, next_ns in zip(moments, [*moments[1:], inf], strict=True):
        # A restart belongs to the fault after which it began, also if it ends after the next one.
        restarts = _restarts(_restarted(history, injected_ns), writer, clock, next_ns)
        scopes += [scope_of(injected_ns, restart) for restart in restarts]
        if not restarts:
            start_ns = _checkpoint_ns(history, clock, injected_ns) - slack_ns
            end_ns = injected_ns + slack_ns
            scopes.append(_scope(sent, injected_ns, frozenset(), start_ns, end_ns))
    if not any(scope.partitions for scope in scopes) and _restarted(history, moments[0]):
        raise LossScopeUnknown(
            "no subtask that writes the output restarted, only others; `vertex` may name one whose "
            "subtasks share their numbers, or with `spread` any other"
        )
    by_itself = _restarts(restarts_since_first_run(history), writer, clock, moments[0])
    # A restart that ended before anything was sent lost nothing.
    loaded = [each for each in by_itself if sent and each.ran_ns > sent[0].at_ns]
    return (*(scope_of(moments[0], restart) for restart in loaded), *scopes)


def _scope(
    sent: list[SentRange],
    injected_ns: int,
    partitions: frozenset[int],
    start_ns: int,
    end_ns: int,
) -> LossScope:
    within = recorded_between(sent, start_ns, end_ns)
    return LossScope(
        partitions=partitions,
        injected_ns=injected_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        first=within[0].first if within else 0,
        last=within[-1].last if within else -1,
    )


def _restarted(history: History, after_ns: int) -> dict[Subtask, SubtaskHistory]:
    """The subtasks that began anew after a moment."""
    found = restarts_of_subtasks(history, after_ns)
    return {place: task for place, task in found.items() if task.restarts}


def _restarts(
    restarted: Mapping[Subtask, SubtaskHistory],
    writer: str,
    clock: EngineClock,
    until_ns: float,
) -> list[Restart]:
    """Every restart of the writer's subtasks that began by `until_ns`. One that failed before it
    ran is part of the next. Raises LossScopeUnknown for a subtask that never ran again."""
    found = []
    for (vertex, number), task in sorted(restarted.items()):
        if vertex != writer:
            continue
        began_ns = None
        for attempt in task.attempts:
            began_ns = _began_ns(attempt, clock) if began_ns is None else began_ns
            if began_ns > until_ns:
                began_ns = None
                break
            ran = next((event.at_ns for event in attempt if event.state in RAN), None)
            if ran is not None:
                found.append(Restart(subtask=number, began_ns=began_ns, ran_ns=ran))
                began_ns = None
        if began_ns is not None:
            raise LossScopeUnknown(f"subtask {number} that writes the output never ran again")
    return found


def _began_ns(attempt: Iterable[TaskChanged], clock: EngineClock) -> int:
    """When an attempt was deployed, by the engine's stamp or its first observation, whichever is
    earlier."""
    return min(clock.stamped_ns(event, event.start_ms) for event in attempt)


def _checkpoint_ns(history: History, clock: EngineClock, by_ns: int) -> int:
    """The trigger of the newest checkpoint that had completed by a moment, by the engine's stamps.
    A job is not set back to a savepoint by itself. Another job, or the same one later, may have a
    checkpoint of the same number. Raises LossScopeUnknown."""
    triggered_ns = {
        _checkpoint_key(event): at_ns
        for event in history.of(CheckpointTriggered)
        if (at_ns := clock.moment_ns(event)) <= by_ns
    }
    completed = (
        _checkpoint_key(event)
        for event in history.of(CheckpointCompleted)
        if clock.stamped_ns(event, event.last_ack_ms) <= by_ns
        and "SAVEPOINT" not in (event.type or "")
    )
    found_ns = [triggered_ns[each] for each in completed if each in triggered_ns]
    if not found_ns:
        raise LossScopeUnknown("no checkpoint was complete before, so all may be lost")
    newest_ns = max(found_ns)
    for event in _without_end(history):
        newer = triggered_ns.get(_checkpoint_key(event), 0) > newest_ns
        if newer and clock.moment_ns(event) <= by_ns:
            raise LossScopeUnknown(
                f"every subtask acknowledged checkpoint {event.checkpoint}, the newest before a "
                "restart, and its end is not recorded"
            )
    return newest_ns


def _without_end(history: History) -> Iterator[CheckpointAllAcknowledged]:
    """The checkpoints, without savepoints, that may have completed: every subtask acknowledged
    them, and their end is not recorded."""
    ended = {_checkpoint_key(event) for event in history.of(CheckpointEnd)}
    for event in history.of(CheckpointAllAcknowledged):
        if _checkpoint_key(event) not in ended and "SAVEPOINT" not in (event.type or ""):
            yield event


def _checkpoint_key(event: CheckpointEvent) -> tuple[str | None, int]:
    return event.job, event.checkpoint


def _writer(history: History, part: str | None) -> str:
    """The vertex that writes the output. Raises LossScopeUnknown unless there is exactly one."""
    names = {event.vertex: event.name for event in history.of(TaskChanged)}
    if not names:
        raise LossScopeUnknown("nothing is known of the attempts of the job's subtasks")
    candidates: list[str] = []
    for word in (part,) if part is not None else WRITERS:
        candidates = candidates or [vertex for vertex, name in names.items() if word in name]
    if len(candidates) != 1:
        several = ", ".join(names[vertex] for vertex in candidates or names)
        raise LossScopeUnknown(
            f"`vertex` must name the one that writes the output, among {several}"
        )
    return candidates[0]
