"""The scope of a failover's possible loss: the partitions of the failed subtasks, and the records
sent between the last checkpoint and the moment these subtasks ran again."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.harness.verdict.evidence.sent_times import recorded_between, sent_ranges_of
from streamquake.harness.verdict.evidence.task_restarts import Subtask, restarts_of_subtasks
from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointEvent,
    CheckpointTriggered,
)
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.topologies.errors import ErrorKind, StreamquakeError

WRITERS = ("Writer", "Sink")
"""Flink's names for operators that write, in the order of the search."""
RAN = ("RUNNING", "FINISHED")


class LossScopeUnknown(StreamquakeError, LookupError):
    """The scope of the possible loss is not known; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class LossScope:
    """The scope of one fault's possible loss. Without partitions no writing subtask had failed."""

    partitions: frozenset[int]
    injected_ns: int
    start_ns: int
    end_ns: int
    first: int
    last: int
    """Records by index, both included, that were sent between start and end."""

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def scopes_of(
    history: History, vertex: str | None, partitions: int, slack_s: float
) -> tuple[LossScope, ...]:
    """The scope of each fault that took effect. Raises LossScopeUnknown.

    A fault that restarted only subtasks that do not write has no scope: `vertex` may name a vertex
    whose subtasks share the writers' numbers.
    """
    injected = history.of(FaultInEffect)
    if not injected:
        raise LossScopeUnknown("no fault took effect, so nothing may be lost")
    writer = _writer(history, vertex)
    moments = [event.start_ns for event in injected]
    scopes = []
    for injected_ns, next_ns in zip(moments, [*moments[1:], None], strict=True):
        restarted = _ran_again_ns(history, injected_ns, next_ns)
        failed = {
            number: ran for (vertex_id, number), ran in restarted.items() if vertex_id == writer
        }
        scopes.append(_scope(history, injected_ns, failed, partitions, slack_s))
    if not any(scope.partitions for scope in scopes) and _ran_again_ns(history, moments[0]):
        raise LossScopeUnknown(
            "no subtask that writes the output restarted, only others; `vertex` may name one whose "
            "subtasks share their numbers"
        )
    return tuple(scopes)


def _scope(
    history: History,
    injected_ns: int,
    failed: dict[int, int | None],
    partitions: int,
    slack_s: float,
) -> LossScope:
    slack_ns = round(slack_s * 1e9)
    start_ns = _checkpoint_ns(history, injected_ns) - slack_ns
    if never_ran := sorted(number for number, ran in failed.items() if ran is None):
        raise LossScopeUnknown(f"subtask {never_ran[0]} that writes the output never ran again")
    end_ns = (
        max((ran for ran in failed.values() if ran is not None), default=injected_ns) + slack_ns
    )
    notes = recorded_between(sent_ranges_of(history), start_ns, end_ns)
    return LossScope(
        partitions=frozenset(number % partitions for number in failed),
        injected_ns=injected_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        first=notes[0].first if notes else 0,
        last=notes[-1].last if notes else -1,
    )


def _ran_again_ns(
    history: History, after_ns: int, until_ns: int | None = None
) -> dict[Subtask, int | None]:
    """The subtasks that restarted between two moments -> when their last attempt ran, None where it
    never did."""
    seen = History(event for event in history if until_ns is None or event.at_ns <= until_ns)
    ran: dict[Subtask, int | None] = {}
    for (vertex, subtask), task in restarts_of_subtasks(seen, after_ns).items():
        if not task.restarts:
            continue
        last = (vertex, subtask, task.last.attempt)
        moments = (
            event.at_ns
            for event in seen.of(TaskChanged)
            if event.at_ns > after_ns
            and event.state in RAN
            and (*event.place, event.attempt) == last
        )
        ran[vertex, subtask] = next(moments, None)
    return ran


def _checkpoint_ns(history: History, injected_ns: int) -> int:
    """The trigger of the last checkpoint that completed before the fault. Another job, or the same
    one later, may have a checkpoint of the same number. Raises LossScopeUnknown."""
    before = History(event for event in history if event.at_ns <= injected_ns)
    triggered = {_checkpoint_key(event): event.at_ns for event in before.of(CheckpointTriggered)}
    done = [_checkpoint_key(event) for event in before.of(CheckpointCompleted)]
    completed_ns = [triggered[each] for each in done if each in triggered]
    if not completed_ns:
        raise LossScopeUnknown("no checkpoint was complete before the fault, so all may be lost")
    return completed_ns[-1]


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
