"""What a history looks like over time: its end, its phases and its marks.

Pure functions from a history to values with begin and end in seconds since the run began; the
figures only draw them. Fault windows, checkpoints and task attempts have files of their own beside
this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import History


@dataclass(frozen=True, kw_only=True)
class PhaseSpan:
    phase: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class TimelineMark:
    """A moment worth a sign: something of the job or of a container."""

    row: Literal["job", "nodes"]
    what: str
    at_s: float
    detail: str = ""


def end_s(history: History) -> float:
    """The moment of the last event, in seconds since the run began."""
    return max((event.at_s for event in history), default=0.0)


def phases(history: History) -> tuple[PhaseSpan, ...]:
    """The phases of the run; each ends where the next begins."""
    started = history.of(Action.PHASE)
    ends_s = [*(event.at_s for event in started[1:]), end_s(history)]
    return tuple(
        PhaseSpan(phase=str(event.value["phase"]), begin_s=event.at_s, end_s=finish_s)
        for event, finish_s in zip(started, ends_s, strict=False)
    )


_MARKED: Mapping[Action, tuple[Literal["job", "nodes"], str, str]] = {
    Action.JOB_SUBMITTED: ("job", "submitted", "name"),
    Action.JOB_RUNNING: ("job", "running", ""),
    Action.JOB_FAILING: ("job", "failing", "cause"),
    Action.JOB_RESTARTING: ("job", "restarting", "restart"),
    Action.JOB_RESTORED: ("job", "restored", "checkpoint"),
    Action.JOB_ENDED: ("job", "ended", "state"),
    Action.CONTAINER_DIED: ("nodes", "died", "exit_code"),
    Action.CONTAINER_OOM: ("nodes", "out of memory", ""),
    Action.CONTAINER_STARTED: ("nodes", "started", ""),
}
"""Event -> row, what it is called there, and which of its values tells more."""


def marks(history: History) -> tuple[TimelineMark, ...]:
    """The moments of the job and of the containers, in order."""
    return tuple(_mark(event) for event in history.of(*_MARKED))


def _mark(event: Event) -> TimelineMark:
    row, what, key = _MARKED[event.action]
    more = f"{key.replace('_', ' ')} {event.value[key]}" if event.value.get(key) is not None else ""
    parts = [str(event.value["node"]) if row == "nodes" else "", more]
    return TimelineMark(
        row=row, what=what, at_s=event.at_s, detail=", ".join(p for p in parts if p)
    )
