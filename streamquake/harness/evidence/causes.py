"""What was going on when a record was written or sent: the stretches of a run, each with its cause.

A stretch ends where something changes that can explain an anomaly: a fault bites or is gone, a
checkpoint is completed (in Flink each writer's transaction reaches from one to the next), another
attempt of what writes begins to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamquake.harness.evidence.loss_scope import WRITERS
from streamquake.harness.evidence.sent_times import SentNote
from streamquake.reports.event import Action
from streamquake.reports.history import History
from streamquake.reports.timeline import FaultWindow, fault_windows


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """From a moment of the run's clock until the next stretch."""

    from_ns: int
    cause: str


def stretches(history: History) -> tuple[Stretch, ...]:
    """The stretches of a run; the first begins with it. One alone explains nothing."""
    windows = [window for window in fault_windows(history) if window.in_effect_s is not None]
    moments = {0, *_checkpoints(history), *_attempts(history)}
    moments |= {round(window.called_s * 1e9) for window in windows}
    moments |= {round(w.healed_s * 1e9) for w in windows if w.healed_s is not None}
    return tuple(
        Stretch(from_ns=at_ns, cause="; ".join(_told(history, windows, at_ns)))
        for at_ns in sorted(moments)
    )


def first_sent(notes: Sequence[SentNote], parts: Sequence[Stretch]) -> tuple[int, ...]:
    """Of each stretch the first record, by index, that was noted as sent in it or later."""
    end = max((note.last for note in notes), default=-1) + 1
    return tuple(
        min((note.first for note in notes if note.at_ns >= part.from_ns), default=end)
        for part in parts
    )


def _told(history: History, windows: Sequence[FaultWindow], at_ns: int) -> list[str]:
    told = [_of_faults(windows, at_ns / 1e9)]
    checkpoints, attempts = _checkpoints(history), _attempts(history)
    if checkpoints:
        done = [number for moment, number in checkpoints.items() if moment <= at_ns]
        later = [number for moment, number in checkpoints.items() if moment > at_ns]
        after = f"after checkpoint {done[-1]}" if done else "before the first checkpoint"
        told.append(f"{after}, before {later[0]}" if done and later else after)
    if attempts:
        begun = [attempt for moment, attempt in attempts.items() if moment <= at_ns]
        told.append(f"writer's attempt {begun[-1]}" if begun else "before the writer ran")
    return told


def _of_faults(windows: Sequence[FaultWindow], at_s: float) -> str:
    begun = [window for window in windows if window.called_s <= at_s]
    if not begun:
        return "before any fault"
    under_way = [w for w in begun if w.healed_s is None or at_s < w.healed_s]
    word = "during" if under_way else "after"
    return f"{word} " + ", ".join(f"{w.fault} on {w.target}" for w in under_way or begun[-1:])


def _checkpoints(history: History) -> dict[int, int]:
    """Moment -> the checkpoint that was completed then."""
    return {e.at_ns: e.value["checkpoint"] for e in history.of(Action.CHECKPOINT_COMPLETED)}


def _attempts(history: History) -> dict[int, int]:
    """Moment -> the attempt of what writes that began to run then, the first of its subtasks."""
    found: dict[int, int] = {}
    for event in history.of(Action.TASK_CHANGED):
        writes = any(word in str(event.value.get("vertex_name", "")) for word in WRITERS)
        attempt = event.value["attempt"]
        if writes and event.value["state"] == "RUNNING" and attempt not in found.values():
            found[event.at_ns] = attempt
    return found
