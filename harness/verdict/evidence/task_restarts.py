"""Whether each subtask survived a moment or restarted, and the evidence of it.

Two attempts differ in their number or, where a new JobManager numbers them again from zero, in
their start time. A survivor keeps both, stays on its node, and its running time keeps growing. The
running time falls when an attempt was replaced between two polls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.reports.record.metrics import Samples

Subtask = tuple[str, int]
"""A vertex and the number of one of its subtasks."""
RUNNING = "subtask_running_ms"
SLACK_MS = 2000
"""How far behind the run's clock a survivor's running time may be: a poll takes that long."""
OVER = ("CANCELING", "CANCELED", "FAILED")
RAN = ("RUNNING", "FINISHED")
PROGRESS = {
    "CREATED": 0,
    "SCHEDULED": 1,
    "DEPLOYING": 2,
    "INITIALIZING": 3,
    "RUNNING": 4,
    "CANCELING": 5,
    **dict.fromkeys(("CANCELED", "FAILED", "FINISHED"), 6),
}
"""How far a state is in the life of an attempt, which never goes back
(https://nightlies.apache.org/flink/flink-docs-stable/docs/internals/job_scheduling/)."""
LAST = 3
"""How many of the last samples count: the answer to a single one may have been late."""
LATE_NS = 2 * 10**9
"""A sample recorded so soon after its task had a new attempt may still be of the attempt before."""


@dataclass(frozen=True, kw_only=True)
class SubtaskHistory:
    """One subtask around a moment.

    `attempts` are its later attempts, each with its events. `sign` is other evidence of a restart:
    `node changed`, `duration fell`, or `ended` where it was not started again. `watched` is whether
    its running time was sampled; `unclear` is whether the samples do not show if it survived.
    `watched_until_ns` is when it was sampled last in the same attempt. `set_back` are two states of
    one attempt in an impossible order, which may be two attempts.
    """

    before: TaskChanged
    last: TaskChanged
    attempts: tuple[tuple[TaskChanged, ...], ...] = ()
    sign: str | None = None
    watched: bool = False
    unclear: bool = False
    watched_until_ns: float = 0.0
    set_back: tuple[str, str] | None = None
    before_ms: float | None = None
    after_ms: float | None = None

    @property
    def restarts(self) -> int:
        return len(self.attempts)

    @property
    def restarted(self) -> bool:
        return self.restarts > 0 or self.sign is not None

    @property
    def name(self) -> str:
        return self.before.name

    @property
    def subtask(self) -> int:
        return self.before.subtask

    @property
    def node(self) -> str:
        """Where it ran before."""
        return str(self.before.node)


def restarts_of_subtasks(
    history: History,
    after_ns: int,
    running: Mapping[str, Samples] | None = None,
    until_ns: int | None = None,
) -> dict[Subtask, SubtaskHistory]:
    """Every subtask recorded until the moment. `running` are the samples of RUNNING by subtask. If
    the history is cut off at `until_ns`, they include later samples."""
    found = {
        place: task
        for place, events in _events_of_subtasks(history).items()
        if (task := _subtask_history(events, after_ns)) is not None
    }
    names = Counter((task.name, task.subtask) for task in found.values())
    return {
        place: _with_duration(task, _with_value(samples), after_ns, until_ns)
        if names[task.name, task.subtask] == 1
        and not task.restarted
        and (samples := (running or {}).get(f"{task.name}/{task.subtask}")) is not None
        else task
        for place, task in found.items()
    }


def restarts_since_first_run(history: History) -> dict[Subtask, SubtaskHistory]:
    """Every subtask that ran, with its attempts after the one that ran first."""
    found = {}
    for place, events in _events_of_subtasks(history).items():
        ran_ns = next((event.at_ns for event in events if event.state in RAN), None)
        task = None if ran_ns is None else _subtask_history(events, ran_ns)
        if task is not None:
            found[place] = task
    return found


def survivors_unsampled(
    found: Iterable[SubtaskHistory],
    running: Mapping[str, Samples],
    after_ns: int,
) -> tuple[SubtaskHistory, ...]:
    """The survivors that may have restarted: their samples ended by a moment, are unclear, or are
    missing. Records of older versions have neither start times nor these samples."""

    def is_unsampled(task: SubtaskHistory) -> bool:
        if task.unclear:
            return True
        if task.watched:
            return task.watched_until_ns <= after_ns
        samples = running.get(f"{task.name}/{task.subtask}")
        if samples is None:
            return task.before.deployed_ms > 0
        at_ns = _with_value(samples).at_s * 1e9
        return len(at_ns) > 0 and float(at_ns.max()) <= after_ns

    return tuple(task for task in found if not task.restarted and is_unsampled(task))


def _events_of_subtasks(history: History) -> dict[Subtask, list[TaskChanged]]:
    found: dict[Subtask, list[TaskChanged]] = {}
    for event in history.of(TaskChanged):
        found.setdefault(event.place, []).append(event)
    return found


def _subtask_history(events: Sequence[TaskChanged], after_ns: int) -> SubtaskHistory | None:
    before = [event for event in events if event.at_ns <= after_ns]
    if not before:
        return None
    later = events[len(before) :]
    attempts = _new_attempts(before[-1], later)
    task = SubtaskHistory(
        before=before[-1],
        last=events[-1],
        attempts=attempts,
        set_back=None if attempts else _set_back((before[-1], *later)),
    )
    # The node is empty before the task is deployed, and null where it is not known.
    nodes = {event.node for event in (before[-1], *later)} - {"", None}
    if task.restarts or (len(nodes) < 2 and events[-1].state not in OVER):
        return task
    return replace(task, sign="node changed" if len(nodes) > 1 else "ended")


def _set_back(attempt: Sequence[TaskChanged]) -> tuple[str, str] | None:
    """The first state in the events of one attempt that cannot follow the one before, after it."""
    for event, following in pairwise(attempt):
        reached, now = PROGRESS.get(event.state), PROGRESS.get(following.state)
        if reached is not None and now is not None and now < reached:
            return event.state, following.state
    return None


def _new_attempts(
    before: TaskChanged, later: Iterable[TaskChanged]
) -> tuple[tuple[TaskChanged, ...], ...]:
    found: list[tuple[TaskChanged, ...]] = []
    attempt, start_ms = before.attempt, int(before.deployed_ms)
    for event in later:
        now_ms = int(event.deployed_ms)
        deployed_again = now_ms > 0 and start_ms > 0 and now_ms != start_ms
        if event.attempt != attempt or deployed_again:
            found.append(())
            start_ms = now_ms
        if found:
            found[-1] = (*found[-1], event)
        attempt, start_ms = event.attempt, now_ms if now_ms > 0 else start_ms
    return tuple(found)


def _with_duration(
    task: SubtaskHistory, samples: Samples, after_ns: int, until_ns: int | None
) -> SubtaskHistory:
    """The subtask with the evidence of its running times.

    A late sample makes an attempt appear younger than it is, never older. So an attempt whose
    running time began before the moment was not started after it.
    """
    at_ns, value = samples.at_s * 1e9, samples.value
    end_ns = np.inf if until_ns is None else until_ns
    own = at_ns > task.before.at_ns + LATE_NS
    before = np.flatnonzero(own & (at_ns <= after_ns))[-1:]
    within = np.flatnonzero(own & (at_ns > after_ns) & (at_ns <= end_ns))
    started_ns = at_ns - value * 1e6
    if (started_ns[at_ns > end_ns] <= after_ns).any():
        return replace(task, watched=True, watched_until_ns=float(at_ns[-1]))
    if len(within) == 0:
        return task
    sampled = np.concatenate([before, within])
    falls = bool((np.diff(value[sampled]) < 0).any())
    later_samples = _same_attempt(value, int(within[-1]))
    since = np.concatenate([within, later_samples])
    newest_ns = started_ns[since[-LAST:]].min()
    behind_ms = (newest_ns - started_ns[sampled[0]]) / 1e6
    if len(before) == 0 and not falls:
        return replace(task, unclear=bool(newest_ns > after_ns + LATE_NS))
    started_later = bool(newest_ns > after_ns) and behind_ms > SLACK_MS
    unconfirmed = until_ns is not None and len(later_samples) == 0
    return replace(
        task,
        watched=falls or not (started_later and unconfirmed),
        unclear=started_later and unconfirmed and not falls,
        watched_until_ns=float(at_ns[since[-1]]),
        before_ms=float(value[sampled[0]]),
        after_ms=float(value[sampled[-1]]),
        sign="duration fell" if falls or (started_later and not unconfirmed) else None,
    )


def _same_attempt(value: npt.NDArray[np.float64], last: int) -> npt.NDArray[np.int64]:
    """The samples after `last` until the running time falls: they are of the same attempt."""
    falls = np.flatnonzero(np.diff(value[last:]) < 0)
    return np.arange(last + 1, last + 1 + int(falls[0]) if len(falls) else len(value))


def _with_value(samples: Samples) -> Samples:
    """The samples that have a value."""
    present = np.isfinite(samples.value)
    return Samples(at_s=samples.at_s[present], value=samples.value[present])
