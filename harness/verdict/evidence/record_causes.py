"""The intervals of a run, each with a cause for anomalies of the records written or sent in it.

An interval ends where something changes that can explain an anomaly: a fault is injected or healed,
a checkpoint completes (in Flink a writer's transaction lasts from one to the next), or another
attempt of the writer begins to run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from streamquake.harness.verdict.evidence.loss_scope import WRITERS
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.fault_events import FaultSkipped
from streamquake.reports.record.fault_windows import FaultWindow, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged

Moments = Sequence[tuple[int, int]]
"""(moment of the run's clock, number of the checkpoint or attempt), ascending by moment."""


@dataclass(frozen=True, kw_only=True)
class CauseInterval:
    """From a moment of the run's clock until the next interval."""

    from_ns: int
    cause: str


def cause_intervals(history: History) -> tuple[CauseInterval, ...]:
    """The intervals of a run; the first begins at zero. A single interval explains nothing."""
    skipped = {event.step for event in history.of(FaultSkipped)}
    windows = [w for w in fault_windows(history) if w.acted or w.step not in skipped]
    checkpoints, attempts = _checkpoints(history), _attempts(history)
    moments = {0, *(at_ns for at_ns, _ in (*checkpoints, *attempts))}
    moments |= {round(window.called_s * 1e9) for window in windows}
    moments |= {round(w.healed_s * 1e9) for w in windows if w.healed_s is not None}
    return tuple(
        CauseInterval(
            from_ns=at_ns, cause="; ".join(_causes_at(windows, checkpoints, attempts, at_ns))
        )
        for at_ns in sorted(moments)
    )


def first_sent_indexes(
    sent_ranges: Sequence[SentRange], parts: Sequence[CauseInterval]
) -> tuple[int, ...]:
    """For each interval the index of the first record whose send was recorded in it or later."""
    end = max((sent_range.last for sent_range in sent_ranges), default=-1) + 1
    return tuple(
        min(
            (sent_range.first for sent_range in sent_ranges if sent_range.at_ns >= part.from_ns),
            default=end,
        )
        for part in parts
    )


def _causes_at(
    windows: Sequence[FaultWindow], checkpoints: Moments, attempts: Moments, at_ns: int
) -> Iterator[str]:
    yield _fault_cause(windows, at_ns / 1e9)
    if checkpoints:
        last, later = _last_and_next(checkpoints, at_ns)
        after = "before the first checkpoint" if last is None else f"after checkpoint {last}"
        yield after if None in (last, later) else f"{after}, before {later}"
    if attempts:
        started, _ = _last_and_next(attempts, at_ns)
        yield "before the writer ran" if started is None else f"writer's attempt {started}"


def _last_and_next(moments: Moments, at_ns: int) -> tuple[int | None, int | None]:
    """The last number by a moment, and the first one after it; None where there is none."""
    change = bisect_right(moments, at_ns, key=itemgetter(0))
    last = moments[change - 1][1] if change else None
    return last, moments[change][1] if change < len(moments) else None


def _fault_cause(windows: Sequence[FaultWindow], at_s: float) -> str:
    started = [window for window in windows if window.called_s <= at_s]
    if not started:
        return "before any fault"
    if under_way := [window for window in started if window.was_under_way(at_s)]:
        return f"during {_names(under_way)}"
    last_s = max(window.healed_s or 0.0 for window in started)
    return f"after {_names(w for w in started if w.healed_s == last_s)}"


def _names(windows: Iterable[FaultWindow]) -> str:
    """Faults with their targets. One without evidence of its effect may have had it."""
    return ", ".join(
        f"{window.fault} on {window.target}{'' if window.acted else ' (effect not verified)'}"
        for window in windows
    )


def _checkpoints(history: History) -> Moments:
    """The completed checkpoints."""
    completed = history.of(CheckpointCompleted)
    return sorted((event.at_ns, event.checkpoint) for event in completed)


def _attempts(history: History) -> Moments:
    """The attempts of the writer, each by its first running subtask."""
    started: dict[int, int] = {}
    for event in history.of(TaskChanged):
        writes = any(word in (event.vertex_name or "") for word in WRITERS)
        if writes and event.state == "RUNNING":
            started.setdefault(event.attempt, event.at_ns)
    return sorted((at_ns, attempt) for attempt, at_ns in started.items())
