"""The parts of the pipeline that one injection affected in one phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from streamquake.faults.schedule.target import parse_target
from streamquake.harness.coverage.batch_tasks import places_of_batch_tasks
from streamquake.harness.coverage.injections import Injection
from streamquake.harness.coverage.own_steps import own_place
from streamquake.harness.coverage.phase_window import Moment, Onset, PhaseWindow, Position
from streamquake.harness.coverage.places import (
    SINK,
    TaskPlaces,
    is_worker,
    places_of_nodes,
    places_of_target,
)
from streamquake.harness.verdict.evidence.affected_subtasks import (
    affected_subtasks_of,
    tasks_within_reach,
)
from streamquake.harness.verdict.evidence.task_restarts import Subtask
from streamquake.reports.coverage.cell import Place
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.topologies.model import Topology

NAMED = ("workload", "job", "link")
"""Kinds of targets whose part of the pipeline follows from their name."""
Names = Collection[tuple[str, int]]
"""Subtasks, each by the name of its vertex and its index."""


class AffectedPlaces:
    """Finds the places of the injections of one record."""

    def __init__(self, topology: Topology, history: History) -> None:
        self._topology, self._history = topology, history
        self._vertices = TaskPlaces(history)
        self._names = {event.place: event.name for event in history.of(TaskChanged)}

    def at_onset(
        self, injection: Injection, window: PhaseWindow | None
    ) -> Mapping[Place, Position]:
        """Place -> whether the injection took effect there before the place had acknowledged the
        checkpoint of the phase."""
        found = self._places(injection, None)
        acknowledged = {} if window is None else window.acknowledged
        return {
            place: _pending(subtasks, acknowledged, injection.onset)
            for place, subtasks in found.items()
        }

    def at_moment(self, injection: Injection, at_ns: int) -> Collection[Place]:
        """The places of a fault that lasts: tasks may have moved to other nodes meanwhile."""
        return self._places(injection, at_ns).keys()

    def _places(self, injection: Injection, at_ns: int | None) -> Mapping[Place, Names]:
        """Place -> the subtasks there, where these are known."""
        choice, effect = parse_target(injection.step.target), injection.effect
        own = own_place(injection.fault)
        if own is not None:
            return {own: ()}
        if choice.how in NAMED:
            return dict.fromkeys(places_of_target(choice, self._topology), ())
        if effect is None or effect.nodes is None:
            return {Place.UNKNOWN: ()}
        workers = [node for node in effect.nodes if is_worker(node, self._topology)]
        others = [node for node in effect.nodes if node not in workers]
        found: dict[Place, Names] = dict.fromkeys(places_of_nodes(others, self._topology), ())
        if workers:
            found |= self._of_workers(workers, injection, effect, at_ns)
        return found

    def _of_workers(
        self,
        workers: Collection[str],
        injection: Injection,
        effect: FaultInEffect,
        at_ns: int | None,
    ) -> Mapping[Place, Names]:
        if not self._names:  # a query reports the tasks of its batches, and no subtasks
            called_ns = injection.onset.called_ns if at_ns is None else at_ns
            found = places_of_batch_tasks(workers, self._history, called_ns)
            return dict.fromkeys(found or ({Place.UNKNOWN} if at_ns is None else ()), ())
        if at_ns is None:
            subtasks = affected_subtasks_of(effect, self._history)
            return self._by_place(injection, subtasks) or {Place.UNKNOWN: ()}
        return self._by_place(injection, tasks_within_reach(effect, self._history, at_ns))

    def _by_place(self, injection: Injection, subtasks: Iterable[Subtask]) -> dict[Place, Names]:
        operator = str(injection.step.params.get("operator") or "")
        found: dict[Place, list[tuple[str, int]]] = defaultdict(list)
        for subtask in subtasks:
            vertex = self._names[subtask]
            if operator in vertex:
                for place in _of_operator(operator, self._vertices.of(vertex)):
                    found[place].append((vertex, subtask[1]))
        return dict(found)


def _of_operator(operator: str, places: frozenset[Place]) -> frozenset[Place]:
    """The places of a vertex, or only that of the operator that a fault names."""
    if not operator or len(places) == 1:
        return places
    return frozenset({Place.SINK}) if SINK.search(operator) else places - {Place.SINK}


def _pending(
    subtasks: Names, acknowledged: Mapping[tuple[str, int], Moment], onset: Onset
) -> Position:
    """Whether some of the subtasks had not acknowledged the checkpoint when a fault took effect."""
    if not subtasks or not acknowledged:
        return Position.PROVEN
    known = [acknowledged.get(subtask) for subtask in subtasks]
    if any(moment is None or moment.earliest_ns >= onset.seen_ns for moment in known):
        return Position.PROVEN
    latest_ns = max(moment.latest_ns for moment in known if moment is not None)
    return Position.OUTSIDE if latest_ns <= onset.called_ns else Position.POSSIBLE
