"""Checkpoints over time: each from its trigger to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from streamquake.reports.record.checkpoint_events import (
    CheckpointCompleted,
    CheckpointEnd,
    CheckpointTriggered,
    StampedCheckpointEvent,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestored
from streamquake.reports.run.timeline import end_s

CheckpointState = Literal["completed", "failed", "open"]


@dataclass(frozen=True, kw_only=True)
class CheckpointBar:
    """One checkpoint from trigger to end. An open one ends when its job is restored without it, or
    with the history."""

    checkpoint: int
    type: str
    state: CheckpointState
    begin_s: float
    end_s: float
    detail: Mapping[str, Any] = field(default_factory=dict)


def checkpoint_bars(history: History) -> tuple[CheckpointBar, ...]:
    """Every checkpoint, by trigger time.

    The engine's own time stamps are used: a poll observes a checkpoint late, but its trigger time
    is exact.
    """
    began_ms = _run_began_ms(history)
    ends = {event.checkpoint: event for event in history.of(CheckpointEnd)}
    begins = {event.checkpoint: event for event in history.of(CheckpointTriggered)}
    bars = [
        _bar(begins.get(number), ends.get(number), began_ms, history) for number in begins | ends
    ]
    return tuple(sorted(bars, key=lambda bar: (bar.begin_s, bar.checkpoint)))


def _run_began_ms(history: History) -> float | None:
    """The run's begin on the engine's clock (epoch ms), None when no event has a time stamp.

    An event is never observed before it happens. So of all events with an engine's time stamp, the
    one with the shortest delay gives the best estimate.
    """
    triggered = [
        event.trigger_ms - event.at_ns / 1e6
        for event in history.of(CheckpointTriggered)
        if event.trigger_ms
    ]
    ended = [
        event.trigger_ms + (event.duration_ms or 0) - event.at_ns / 1e6
        for event in history.of(CheckpointEnd)
        if event.trigger_ms
    ]
    return max((*triggered, *ended), default=None)


def _bar(
    trigger: CheckpointTriggered | None,
    end: CheckpointEnd | None,
    began_ms: float | None,
    history: History,
) -> CheckpointBar:
    events = [event for event in (trigger, end) if event is not None]
    newest = events[-1]
    trigger_ms = newest.trigger_ms or events[0].trigger_ms
    begin_s = events[0].at_s
    if trigger_ms and began_ms is not None:
        begin_s = (trigger_ms - began_ms) / 1e3
    finish_s = _left_behind_s(newest, history) if end is None else end.at_s
    if end is not None and end.duration_ms is not None:
        finish_s = begin_s + end.duration_ms / 1e3
    recorded = {key: item for event in events for key, item in event.value.items()}
    shown = {k: v for k, v in recorded.items() if k not in ("checkpoint", "type", "trigger_ms")}
    return CheckpointBar(
        checkpoint=newest.checkpoint,
        type=newest.type or events[0].type or "",
        state=_checkpoint_state(end),
        begin_s=begin_s,
        end_s=max(begin_s, finish_s),
        detail=shown,
    )


def _left_behind_s(newest: StampedCheckpointEvent, history: History) -> float:
    """When an open checkpoint can no longer complete. The coordinator that triggered it may have
    died with it, so that its end was never recorded."""
    restored = (event.at_s for event in history.of(JobRestored) if event.index > newest.index)
    return next(restored, end_s(history))


def _checkpoint_state(end: CheckpointEnd | None) -> CheckpointState:
    if end is None:
        return "open"
    return "completed" if isinstance(end, CheckpointCompleted) else "failed"
