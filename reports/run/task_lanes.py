"""Task attempts over time: one lane for each subtask, a span for each state of each attempt."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobSubmitted, TaskChanged
from streamquake.reports.run.timeline import end_s


@dataclass(frozen=True, kw_only=True)
class TaskSpan:
    """The time that one attempt of a subtask spent in one state."""

    state: str
    attempt: int
    node: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class Lane:
    """The states of all attempts of one subtask."""

    vertex: str
    subtask: int
    spans: tuple[TaskSpan, ...]


def lanes(history: History) -> tuple[Lane, ...]:
    """One lane for each subtask, in the order of the job's vertices."""
    names = vertex_names(history)
    changes: dict[tuple[str, int], list[TaskChanged]] = {}
    for event in history.of(TaskChanged):
        name = names.get(event.vertex) or event.name
        changes.setdefault((name, event.subtask), []).append(event)
    order = {name: place for place, name in enumerate(names.values())}
    for vertex, _ in changes:
        order.setdefault(vertex, len(order))
    last_s = end_s(history)
    return tuple(
        Lane(vertex=vertex, subtask=subtask, spans=_spans(changes[vertex, subtask], last_s))
        for vertex, subtask in sorted(changes, key=lambda key: (order[key[0]], key[1]))
    )


def vertex_names(history: History) -> dict[str, str]:
    """Vertex id -> name, as reported when the job was submitted."""
    return {
        str(vertex["id"]): str(vertex["name"])
        for event in history.of(JobSubmitted)
        for vertex in event.vertices
    }


def _spans(changes: list[TaskChanged], last_s: float) -> tuple[TaskSpan, ...]:
    ordered = sorted(changes, key=lambda event: event.at_ns)
    ends = [event.at_s for event in ordered[1:]] + [last_s]
    return tuple(
        TaskSpan(
            state=event.state.upper(),
            attempt=event.attempt,
            node=event.node or "",
            begin_s=event.at_s,
            end_s=end,
        )
        for event, end in zip(ordered, ends, strict=True)
    )
