"""What was going on when a record was written or sent: the intervals of a run, each with its cause.

An interval ends where something changes that can explain an anomaly: a fault is in effect or
healed, a checkpoint is completed (in Flink each writer's transaction reaches from one to the next),
another attempt of what writes begins to run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from streamquake.harness.verdict.evidence.loss_scope import WRITERS
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.fault_windows import FaultWindow, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged

Moments = Sequence[tuple[int, int]]
"""Moments of the run's clock, ascending, each with the number of what was done then."""


@dataclass(frozen=True, kw_only=True)
class CauseInterval:
    """From a moment of the run's clock until the next interval."""

    from_ns: int
    cause: str


def intervals(history: History) -> tuple[CauseInterval, ...]:
    """The intervals of a run; the first begins with it. One alone explains nothing."""
    windows = [window for window in fault_windows(history) if window.in_effect_s is not None]
    checkpoints, attempts = _checkpoints(history), _attempts(history)
    moments = {0, *(at_ns for at_ns, _ in (*checkpoints, *attempts))}
    moments |= {round(window.called_s * 1e9) for window in windows}
    moments |= {round(w.healed_s * 1e9) for w in windows if w.healed_s is not None}
    return tuple(
        CauseInterval(
            from_ns=at_ns, cause="; ".join(_reported(windows, checkpoints, attempts, at_ns))
        )
        for at_ns in sorted(moments)
    )


def first_sent(notes: Sequence[SentRange], parts: Sequence[CauseInterval]) -> tuple[int, ...]:
    """Of each interval the first record, by index, that was recorded as sent in it or later."""
    end = max((note.last for note in notes), default=-1) + 1
    return tuple(
        min((note.first for note in notes if note.at_ns >= part.from_ns), default=end)
        for part in parts
    )


def _reported(
    windows: Sequence[FaultWindow], checkpoints: Moments, attempts: Moments, at_ns: int
) -> Iterator[str]:
    yield _of_faults(windows, at_ns / 1e9)
    if checkpoints:
        done, later = _around(checkpoints, at_ns)
        after = "before the first checkpoint" if done is None else f"after checkpoint {done}"
        yield after if None in (done, later) else f"{after}, before {later}"
    if attempts:
        started, _ = _around(attempts, at_ns)
        yield "before the writer ran" if started is None else f"writer's attempt {started}"


def _around(moments: Moments, at_ns: int) -> tuple[int | None, int | None]:
    """What was last by a moment, and what was first after it."""
    change = bisect_right(moments, at_ns, key=itemgetter(0))
    done = moments[change - 1][1] if change else None
    return done, moments[change][1] if change < len(moments) else None


def _of_faults(windows: Sequence[FaultWindow], at_s: float) -> str:
    started = [window for window in windows if window.called_s <= at_s]
    if not started:
        return "before any fault"
    under_way = [w for w in started if w.healed_s is None or at_s < w.healed_s]
    word = "during" if under_way else "after"
    return f"{word} " + ", ".join(f"{w.fault} on {w.target}" for w in under_way or started[-1:])


def _checkpoints(history: History) -> Moments:
    """Of each completed checkpoint the moment and the number."""
    completed = history.of(CheckpointCompleted)
    return sorted((event.at_ns, event.checkpoint) for event in completed)


def _attempts(history: History) -> Moments:
    """Of each attempt of what writes when it began to run, the first of its subtasks."""
    started: dict[int, int] = {}
    for event in history.of(TaskChanged):
        writes = any(word in (event.vertex_name or "") for word in WRITERS)
        if writes and event.state == "RUNNING":
            started.setdefault(event.attempt, event.at_ns)
    return sorted((at_ns, attempt) for attempt, at_ns in started.items())
