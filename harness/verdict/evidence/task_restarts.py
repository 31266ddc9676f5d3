"""What became of each subtask after a moment: went on, or was started again, and by which sign.

Two attempts differ in their number or, where a new JobManager numbers them anew, in the time they
started; a survivor has the same ones, stays on its node, and the time it has been running goes on
growing. That time falls when an attempt was replaced between two looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.reports.record.metrics import Samples

Subtask = tuple[str, int]
"""A vertex and the number of one of its subtasks."""
RUNNING = "subtask_running_ms"
SLACK_MS = 2000
"""How far behind the run's clock a survivor's running time may be: a look takes that long."""
OVER = ("CANCELING", "CANCELED", "FAILED")
LAST = 3
"""So many last samples are looked at; one of them alone may have been answered late."""
LATE_NS = 2 * 10**9
"""How much later a sample may be recorded than its task was seen in another attempt, and yet be of
the one before."""


@dataclass(frozen=True, kw_only=True)
class SubtaskHistory:
    """One subtask around a moment.

    `restarts` counts its later attempts. `sign` is what shows that a survivor is none:
    `node changed`, `duration fell`, or `ended` where it was not started again. `watched` is whether
    its running time was sampled; `unclear` that the samples do not say which of the two it is.
    """

    before: TaskChanged
    last: TaskChanged
    restarts: int
    sign: str | None = None
    watched: bool = False
    unclear: bool = False
    before_ms: float | None = None
    after_ms: float | None = None

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
    """Every subtask seen until the moment; `running` are the samples of RUNNING by place, also
    those of after `until_ns`, at which a history ends that is a part of the run's."""
    seen: dict[Subtask, list[TaskChanged]] = {}
    for event in history.of(TaskChanged):
        seen.setdefault(event.place, []).append(event)
    found = {
        place: task
        for place, events in seen.items()
        if (task := _subtask_history(events, after_ns)) is not None
    }
    names = Counter((task.name, task.subtask) for task in found.values())
    return {
        place: _with_duration(task, _reported(samples), after_ns, until_ns)
        if names[task.name, task.subtask] == 1
        and not task.restarted
        and (samples := (running or {}).get(f"{task.name}/{task.subtask}")) is not None
        else task
        for place, task in found.items()
    }


def watch_ended(
    found: Iterable[SubtaskHistory], running: Mapping[str, Samples], after_ns: int
) -> tuple[SubtaskHistory, ...]:
    """The survivors whose running time was sampled until a moment, and not after it, or does not
    tell what became of them."""

    def ended(task: SubtaskHistory) -> bool:
        if task.watched or task.unclear:
            return task.unclear
        samples = running.get(f"{task.name}/{task.subtask}")
        if samples is None:
            return False
        at_ns = _reported(samples).at_s * 1e9
        return len(at_ns) > 0 and float(at_ns.max()) <= after_ns

    return tuple(task for task in found if not task.restarted and ended(task))


def _subtask_history(events: Sequence[TaskChanged], after_ns: int) -> SubtaskHistory | None:
    before = [event for event in events if event.at_ns <= after_ns]
    if not before:
        return None
    later = events[len(before) :]
    task = SubtaskHistory(before=before[-1], last=events[-1], restarts=_restarts(before[-1], later))
    # Without a node it has no place yet; null where its place is not known.
    nodes = {event.node for event in (before[-1], *later)} - {"", None}
    if task.restarts or (len(nodes) < 2 and events[-1].state not in OVER):
        return task
    return replace(task, sign="node changed" if len(nodes) > 1 else "ended")


def _restarts(before: TaskChanged, later: Iterable[TaskChanged]) -> int:
    count = 0
    attempt, start_ms = before.attempt, _start_ms(before)
    for event in later:
        now_ms = _start_ms(event)
        begun_anew = now_ms > 0 and start_ms > 0 and now_ms != start_ms
        if event.attempt != attempt or begun_anew:
            count += 1
            start_ms = now_ms
        attempt, start_ms = event.attempt, now_ms if now_ms > 0 else start_ms
    return count


def _start_ms(event: TaskChanged) -> int:
    """When the attempt was deployed, epoch ms; 0 or less while it was not, or is not known."""
    return int(event.start_ms or 0)


def _with_duration(
    task: SubtaskHistory, samples: Samples, after_ns: int, until_ns: int | None
) -> SubtaskHistory:
    """The subtask with what its running times show of a survivor.

    A sample that is noted late makes an attempt look younger than it is, never older: one that
    has been running since before the moment was not started after it.
    """
    at_ns, value = samples.at_s * 1e9, samples.value
    end_ns = np.inf if until_ns is None else until_ns
    its_own = at_ns > task.before.at_ns + LATE_NS
    before = np.flatnonzero(its_own & (at_ns <= after_ns))[-1:]
    within = np.flatnonzero(its_own & (at_ns > after_ns) & (at_ns <= end_ns))
    begun_ns = at_ns - value * 1e6
    if (begun_ns[at_ns > end_ns] <= after_ns).any():
        return replace(task, watched=True)
    if len(within) == 0:
        return task
    known = np.concatenate([before, within])
    fell = bool((np.diff(value[known]) < 0).any())
    beyond = _going_on(value, int(within[-1]))
    newest_ns = begun_ns[np.concatenate([within, beyond])[-LAST:]].min()
    behind_ms = (newest_ns - begun_ns[known[0]]) / 1e6
    if len(before) == 0 and not fell:
        return replace(task, unclear=bool(newest_ns > after_ns + LATE_NS))
    young = bool(newest_ns > after_ns) and behind_ms > SLACK_MS
    cut_off = until_ns is not None and len(beyond) == 0
    return replace(
        task,
        watched=fell or not (young and cut_off),
        unclear=young and cut_off and not fell,
        before_ms=float(value[known[0]]),
        after_ms=float(value[known[-1]]),
        sign="duration fell" if fell or (young and not cut_off) else None,
    )


def _going_on(value: npt.NDArray[np.float64], last: int) -> npt.NDArray[np.int64]:
    """The samples after one of them until the running time falls: they are of the same attempt."""
    fell = np.flatnonzero(np.diff(value[last:]) < 0)
    return np.arange(last + 1, last + 1 + int(fell[0]) if len(fell) else len(value))


def _reported(samples: Samples) -> Samples:
    """Those that have a value."""
    there = np.isfinite(samples.value)
    return Samples(at_s=samples.at_s[there], value=samples.value[there])
