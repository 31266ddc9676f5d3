"""The subtasks that the faults themselves affect: what is to restart in any case.

A fault that ends a process or cuts a machine off hits every subtask on its nodes; an exception
inside a task hits the one subtask in which it was thrown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from streamquake.faults.fault import Fault, faults
from streamquake.harness.verdict.evidence.task_restarts import Subtask
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, TaskChanged

TASK = re.compile(r"(?P<name>.+) \((?P<ordinal>\d+)/\d+\)(?: - execution #\d+)?")
"""How Flink names the task of a failure, counting subtasks from one."""
HIT = re.compile(r"(?P<name>.+) subtask (?P<subtask>\d+)")
"""How the faults inside a JVM name whom they hit."""
ENDS = re.compile("<->|->")
"""What stands between the two nodes in the name of a pair."""
ENDING = ("process", "network")
"""What a fault touches that takes all tasks of its nodes out of the job."""
ORDERING = ("job", "parallelism")
"""What a fault touches that has the engine end all tasks of the job and start them again."""


def must_end_tasks(injected: FaultInEffect) -> bool:
    """Whether the fault of a `fault in effect` leaves no task of its nodes as it was; one that
    slows or fills something need not."""
    fault = _fault(injected)
    if fault is None:
        return True  # old records do not hold the name
    return fault.touches in ENDING or (fault.fails_tasks and _at_records(fault))


def orders_restart(injected: FaultInEffect) -> bool:
    """Whether the job is started again because that was ordered, not because anything failed."""
    fault = _fault(injected)
    return fault is not None and fault.touches in ORDERING


def changes_width(injected: FaultInEffect) -> bool:
    """Whether a fault gives the running job other numbers of subtasks."""
    fault = _fault(injected)
    return fault is not None and fault.touches == "parallelism"


def nodes_of(injected: FaultInEffect) -> set[str]:
    """The nodes that a fault touches; of two between which it cut the network, both."""
    return {end for name in injected.nodes or () for end in ENDS.split(name)}


def affected_subtasks_of(injected: FaultInEffect, history: History) -> set[Subtask]:
    """The subtasks that a fault hit, as they were placed at its injection; none when not known."""
    there = tasks_on_its_nodes(injected, history)
    fault = _fault(injected)
    if fault is None or not fault.fails_tasks:
        return set(there)
    return _failed(injected, history, there) or _hit(injected, there)


def tasks_on_its_nodes(injected: FaultInEffect, history: History) -> dict[Subtask, TaskChanged]:
    """The subtasks that ran on the fault's nodes at its injection, with what was seen of them; a
    pair, of which either node may go on, has none."""
    return _on(injected.nodes or (), history, injected.start_ns)


def tasks_within_reach(injected: FaultInEffect, history: History, at_ns: int) -> set[Subtask]:
    """The subtasks that ran at a moment where the fault may end them: of a pair, on either node."""
    return set(_on(nodes_of(injected), history, at_ns))


def _on(nodes: Collection[str], history: History, at_ns: int) -> dict[Subtask, TaskChanged]:
    placed = _placed(history, at_ns)
    return {place: last for place, last in placed.items() if last.node in nodes}


def _failed(
    injected: FaultInEffect, history: History, there: Mapping[Subtask, TaskChanged]
) -> set[Subtask]:
    """The tasks that the engine names in failures of one cause, the first on the fault's nodes."""
    found: list[tuple[str, Subtask]] = []
    for event in history.of(JobFailing):
        named = TASK.fullmatch(event.task or "")
        if named is None or event.at_ns < injected.start_ns:
            continue
        matching = _matching(there, int(named["ordinal"]) - 1, exactly=named["name"])
        found += [(event.cause or "", place) for place in matching]
    return {place for cause, place in found if cause == found[0][0]}


def _hit(injected: FaultInEffect, there: Mapping[Subtask, TaskChanged]) -> set[Subtask]:
    """The tasks that the fault's own evidence names, by one of their operators."""
    evidence = injected.evidence or {}
    seen = [message for message in evidence.values() if isinstance(message, Mapping)]
    places = (HIT.fullmatch(at) for message in seen for at in message.get("at", ()))
    return {
        place
        for found in places
        if found is not None
        for place in _matching(there, int(found["subtask"]), part=found["name"])
    }


def _matching(
    there: Mapping[Subtask, TaskChanged], subtask: int, exactly: str | None = None, part: str = ""
) -> Iterable[Subtask]:
    for place, last in there.items():
        if place[1] == subtask and (exactly is None or last.name == exactly) and part in last.name:
            yield place


def _placed(history: History, until_ns: int) -> dict[Subtask, TaskChanged]:
    """What was seen last of each subtask; a node of null is the one known before, as long as the
    attempt is the same."""
    placed: dict[Subtask, TaskChanged] = {}
    for event in history.of(TaskChanged):
        if event.at_ns > until_ns:
            continue
        before = placed.get(event.place)
        same = before is not None and before.attempt == event.attempt
        if event.node is not None or not same:
            placed[event.place] = event
    return placed


def _fault(injected: FaultInEffect) -> type[Fault] | None:
    return faults.get(injected.fault)


def _at_records(fault: type[Fault]) -> bool:
    return fault.touches == "records"
