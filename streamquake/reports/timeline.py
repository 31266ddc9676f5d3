"""What a history looks like over time: fault windows, phases, checkpoints, task attempts.

Pure functions from a history to values with begin and end in seconds since the run began; the
figures only draw them, and checks judge by the same windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from streamquake.reports.event import Action, Event
from streamquake.reports.history import History

CheckpointState = Literal["completed", "failed", "open"]


@dataclass(frozen=True, kw_only=True)
class FaultWindow:
    """One disturbance: when it was called, when it was seen to bite, when it was seen gone.

    None where it never was. `reason` says why it did not bite or did not heal.
    """

    step: int
    fault: str
    target: str
    nodes: tuple[str, ...]
    called_s: float
    in_effect_s: float | None = None
    healed_s: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class PhaseSpan:
    phase: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class CheckpointBar:
    """One checkpoint from trigger to end; an open one ends with the history."""

    checkpoint: int
    type: str
    state: CheckpointState
    begin_s: float
    end_s: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TaskSpan:
    """A time one attempt of a subtask spent in one state."""

    state: str
    attempt: int
    node: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class Lane:
    """Everything one subtask went through."""

    vertex: str
    subtask: int
    spans: tuple[TaskSpan, ...]


@dataclass(frozen=True, kw_only=True)
class Mark:
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
    begun = history.of(Action.PHASE)
    ends = [event.at_s for event in begun[1:]] + [end_s(history)]
    return tuple(
        PhaseSpan(phase=str(event.value["phase"]), begin_s=event.at_s, end_s=end)
        for event, end in zip(begun, ends, strict=True)
    )


def fault_windows(history: History) -> tuple[FaultWindow, ...]:
    """The disturbances in the order in which they were called.

    Moments are those at which the system was seen to change (`seen_ns`), where the history has
    them, else those of the events.
    """
    windows: list[FaultWindow] = []
    newest: dict[int, int] = {}
    for event in history:
        if event.action == Action.FAULT_CALLED:
            newest[event.value["step"]] = len(windows)
            windows.append(_called(event))
        elif event.action in _FAULT_ENDS and event.value["step"] in newest:
            place = newest[event.value["step"]]
            windows[place] = _continued(windows[place], event)
    return tuple(windows)


_FAULT_ENDS = frozenset(
    {
        Action.FAULT_IN_EFFECT,
        Action.FAULT_NOT_IN_EFFECT,
        Action.FAULT_HEALED,
        Action.FAULT_NOT_HEALED,
    }
)


def _called(event: Event) -> FaultWindow:
    return FaultWindow(
        step=event.value["step"],
        fault=event.value["fault"],
        target=event.value["target"],
        nodes=tuple(event.value.get("nodes", ())),
        called_s=event.at_s,
    )


def _continued(window: FaultWindow, event: Event) -> FaultWindow:
    if event.action == Action.FAULT_IN_EFFECT:
        called_s = event.value.get("called_ns", window.called_s * 1e9) / 1e9
        return replace(window, called_s=called_s, in_effect_s=_seen_s(event))
    if event.action == Action.FAULT_HEALED:
        return replace(window, healed_s=_seen_s(event))
    return replace(window, reason=str(event.value.get("reason", "")))


def _seen_s(event: Event) -> float:
    seen_ns = event.value.get("seen_ns")
    return event.at_s if seen_ns is None else float(seen_ns / 1e9)


def checkpoint_bars(history: History) -> tuple[CheckpointBar, ...]:
    """Every checkpoint, by trigger time.

    The engine's own stamps are used: a poll sees a checkpoint late, its trigger time is exact.
    """
    began_ms = _run_began_ms(history)
    ends = {
        event.value["checkpoint"]: event
        for event in history.of(Action.CHECKPOINT_COMPLETED, Action.CHECKPOINT_FAILED)
    }
    begins = {e.value["checkpoint"]: e for e in history.of(Action.CHECKPOINT_TRIGGERED)}
    bars = [
        _bar(begins.get(number), ends.get(number), began_ms, end_s(history))
        for number in begins | ends
    ]
    return tuple(sorted(bars, key=lambda bar: (bar.begin_s, bar.checkpoint)))


def _run_began_ms(history: History) -> float | None:
    """The run's begin on the engine's clock (epoch ms), None when no event tells.

    Nothing is seen before it happens, so of all events with an engine's stamp the one seen
    soonest after it is nearest the truth.
    """
    stamped = history.of(
        Action.CHECKPOINT_TRIGGERED, Action.CHECKPOINT_COMPLETED, Action.CHECKPOINT_FAILED
    )
    return max(
        (
            e.value["trigger_ms"] + e.value.get("duration_ms", 0) - e.at_ns / 1e6
            for e in stamped
            if e.value.get("trigger_ms")
        ),
        default=None,
    )


def _bar(
    trigger: Event | None, end: Event | None, began_ms: float | None, last_s: float
) -> CheckpointBar:
    events = [event for event in (trigger, end) if event is not None]
    value = {key: item for event in events for key, item in event.value.items()}
    stamp_ms = value.get("trigger_ms")
    begin_s = events[0].at_s
    if stamp_ms and began_ms is not None:
        begin_s = (stamp_ms - began_ms) / 1e3
    finish_s = last_s if end is None else end.at_s
    if value.get("duration_ms") is not None:
        finish_s = begin_s + value["duration_ms"] / 1e3
    shown = {k: v for k, v in value.items() if k not in ("checkpoint", "type", "trigger_ms")}
    return CheckpointBar(
        checkpoint=value["checkpoint"],
        type=str(value.get("type", "")),
        state=_checkpoint_state(end),
        begin_s=begin_s,
        end_s=max(begin_s, finish_s),
        detail=shown,
    )


def _checkpoint_state(end: Event | None) -> CheckpointState:
    if end is None:
        return "open"
    return "completed" if end.action == Action.CHECKPOINT_COMPLETED else "failed"


def lanes(history: History) -> tuple[Lane, ...]:
    """One lane a subtask, in the order of the job's vertices."""
    names = _vertex_names(history)
    changes: dict[tuple[str, int], list[Event]] = {}
    for event in history.of(Action.TASK_CHANGED):
        vertex = str(event.value["vertex"])
        key = (names.get(vertex, vertex), int(event.value["subtask"]))
        changes.setdefault(key, []).append(event)
    order = {name: place for place, name in enumerate(names.values())}
    for vertex, _ in changes:
        order.setdefault(vertex, len(order))
    last_s = end_s(history)
    return tuple(
        Lane(vertex=vertex, subtask=subtask, spans=_spans(changes[vertex, subtask], last_s))
        for vertex, subtask in sorted(changes, key=lambda key: (order[key[0]], key[1]))
    )


def _vertex_names(history: History) -> dict[str, str]:
    """Vertex id -> name, as the job told when it was submitted."""
    return {
        str(vertex["id"]): str(vertex["name"])
        for event in history.of(Action.JOB_SUBMITTED)
        for vertex in event.value.get("vertices", ())
    }


def _spans(changes: list[Event], last_s: float) -> tuple[TaskSpan, ...]:
    ordered = sorted(changes, key=lambda event: event.at_ns)
    ends = [event.at_s for event in ordered[1:]] + [last_s]
    return tuple(
        TaskSpan(
            state=str(event.value["state"]).upper(),
            attempt=int(event.value["attempt"]),
            node=str(event.value.get("node") or ""),
            begin_s=event.at_s,
            end_s=end,
        )
        for event, end in zip(ordered, ends, strict=True)
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


def marks(history: History) -> tuple[Mark, ...]:
    """The moments of the job and of the containers, in order."""
    return tuple(_mark(event) for event in history.of(*_MARKED))


def _mark(event: Event) -> Mark:
    row, what, key = _MARKED[event.action]
    more = f"{key.replace('_', ' ')} {event.value[key]}" if event.value.get(key) is not None else ""
    parts = [str(event.value["node"]) if row == "nodes" else "", more]
    return Mark(row=row, what=what, at_s=event.at_s, detail=", ".join(p for p in parts if p))
