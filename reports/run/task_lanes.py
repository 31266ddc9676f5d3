"""Task attempts over time: one lane a subtask, a span for each state of each attempt."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import History
from streamquake.reports.run.timeline import end_s


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


def lanes(history: History) -> tuple[Lane, ...]:
    """One lane a subtask, in the order of the job's vertices."""
    names = vertex_names(history)
    changes: dict[tuple[str, int], list[Event]] = {}
    for event in history.of(Action.TASK_CHANGED):
        vertex = str(event.value["vertex"])
        name = names.get(vertex) or str(event.value.get("vertex_name", vertex))
        key = (name, int(event.value["subtask"]))
        changes.setdefault(key, []).append(event)
    order = {name: place for place, name in enumerate(names.values())}
    for vertex, _ in changes:
        order.setdefault(vertex, len(order))
    last_s = end_s(history)
    return tuple(
        Lane(vertex=vertex, subtask=subtask, spans=_spans(changes[vertex, subtask], last_s))
        for vertex, subtask in sorted(changes, key=lambda key: (order[key[0]], key[1]))
    )


def vertex_names(history: History) -> dict[str, str]:
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
