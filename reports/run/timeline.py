"""The timeline of a history: its end, its phases and its marks.

Pure functions from a history to values with begin and end in seconds since the run began. The
charts only draw these values. Fault windows, checkpoints and task attempts are in other files.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streamquake.reports.record.event import Event
from streamquake.reports.record.event_field import EventField
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    JobEnded,
    JobFailing,
    JobRestarting,
    JobRestored,
    JobRunning,
    JobSubmitted,
)
from streamquake.reports.record.run_events import (
    ContainerDied,
    ContainerOom,
    ContainerStarted,
    NodeEvent,
    PhaseBegan,
    ProbeAnswered,
    SandboxDied,
)


@dataclass(frozen=True, kw_only=True)
class PhaseSpan:
    phase: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class ProbeSpan:
    """A time in which the answers to a probe had one result."""

    check: str
    begin_s: float
    end_s: float
    met: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class TimelineMark:
    """A point in time that the chart marks: an event of the job or of a container."""

    row: Literal["job", "nodes"]
    what: str
    at_s: float
    detail: str = ""


def end_s(history: History) -> float:
    """The time of the last event, in seconds since the run began."""
    return max((event.at_s for event in history), default=0.0)


def phases(history: History) -> tuple[PhaseSpan, ...]:
    """The phases of the run; each ends where the next begins."""
    started = history.of(PhaseBegan)
    ends_s = [*(event.at_s for event in started[1:]), end_s(history)]
    return tuple(
        PhaseSpan(phase=event.phase, begin_s=event.at_s, end_s=finish_s)
        for event, finish_s in zip(started, ends_s, strict=False)
    )


_MARKED: Mapping[type[Event], tuple[Literal["job", "nodes"], str, EventField[Any] | None]] = {
    JobSubmitted: ("job", "submitted", JobSubmitted.name),
    JobRunning: ("job", "running", None),
    JobFailing: ("job", "failing", JobFailing.cause),
    JobRestarting: ("job", "restarting", JobRestarting.restart),
    JobRestored: ("job", "restored", JobRestored.checkpoint),
    JobEnded: ("job", "ended", JobEnded.state),
    ContainerDied: ("nodes", "died", ContainerDied.exit_code),
    ContainerOom: ("nodes", "out of memory", None),
    ContainerStarted: ("nodes", "started", None),
    SandboxDied: ("nodes", "sandbox died", SandboxDied.exit_code),
}
"""Event -> its row, its name in the chart, and the field with its detail."""


def probe_spans(history: History) -> Mapping[str, tuple[ProbeSpan, ...]]:
    """Check -> the times in which its probe was answered as expected or not."""
    answers: dict[str, list[ProbeAnswered]] = {}
    for answer in history.of(ProbeAnswered):
        answers.setdefault(answer.check, []).append(answer)
    return {
        check: tuple(
            ProbeSpan(
                check=check,
                begin_s=answer.at_s,
                end_s=after.at_s,
                met=answer.met,
                reason=answer.reason or "",
            )
            for answer, after in itertools.pairwise(given)
        )
        for check, given in answers.items()
    }


def marks(history: History) -> tuple[TimelineMark, ...]:
    """The marks of the job and of the containers, in order."""
    return tuple(_mark(event) for event in history.of(*_MARKED))


def _mark(event: Event) -> TimelineMark:
    row, what, field = _MARKED[type(event)]
    held = field.of(event) if field is not None else None
    more = (
        f"{field.name.replace('_', ' ')} {held}" if field is not None and held is not None else ""
    )
    parts = [event.node if isinstance(event, NodeEvent) else "", more]
    return TimelineMark(
        row=row, what=what, at_s=event.at_s, detail=", ".join(p for p in parts if p)
    )
