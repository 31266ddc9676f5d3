"""The subtasks that the faults themselves affect: they must restart in any case.

A fault that ends a process or partitions a machine affects every subtask on its nodes; an exception
inside a task affects only the subtask in which it was thrown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from streamquake.cluster.engines.flink.duties import SUBTASK
from streamquake.faults.fault import Fault, faults
from streamquake.harness.verdict.evidence.task_restarts import Subtask
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, TaskChanged

TASK = re.compile(
    r"(?P<name>.+) \((?P<ordinal>\d+)/\d+\)(?: - execution #(?P<attempt>\d+))?", re.DOTALL
)
"""How Flink names the task of a failure, counting subtasks from one and attempts from zero."""
AFFECTED = re.compile(r"(?P<name>.+) subtask (?P<subtask>\d+)")
"""How the faults inside a JVM name the subtask that they affect."""
ENDS = re.compile("<->|->")
"""The arrow between the two nodes in the name of a pair."""
ENDING_TASKS = ("process", "network")
"""The values of `touches` of faults that end all tasks of their nodes."""
DEPLOYED = ("DEPLOYING", "INITIALIZING", "RUNNING")
"""The states of a subtask that is on some node."""
ORDERING_RESTART = ("job", "parallelism")
"""The values of `touches` of faults that order the engine to restart the job."""


def must_end_tasks(injected: FaultInEffect) -> bool:
    """Whether the fault must end every task of its nodes; one that slows or fills something need
    not."""
    fault = _fault_type(injected)
    if fault is None:
        return True  # old records do not hold the name
    return fault.touches in ENDING_TASKS or (fault.fails_tasks and _touches_records(fault))


def only_silences(injected: FaultInEffect) -> bool:
    """Whether the fault freezes its nodes or cuts them off, and ends none of their processes."""
    fault = _fault_type(injected)
    return fault is not None and fault.touches in ENDING_TASKS and not fault.ends_process


def orders_restart(injected: FaultInEffect) -> bool:
    """Whether the fault orders the restart of the job, so that nothing has to fail for it."""
    fault = _fault_type(injected)
    return fault is not None and fault.touches in ORDERING_RESTART


def changes_width(injected: FaultInEffect) -> bool:
    """Whether the fault rescales the running job."""
    fault = _fault_type(injected)
    return fault is not None and fault.touches == "parallelism"


def nodes_of(injected: FaultInEffect) -> set[str]:
    """The nodes of a fault; of a network partition between two nodes, both."""
    return {end for name in injected.nodes or () for end in ENDS.split(name)}


def affected_subtasks_of(injected: FaultInEffect, history: History) -> set[Subtask]:
    """The subtasks that a fault affected, by their placement at its injection; none when not
    known."""
    present = tasks_on_its_nodes(injected, history)
    fault = _fault_type(injected)
    if fault is None or not fault.fails_tasks:
        return set(present)
    return _named_in_failures(injected, history, present) or _named_by_evidence(injected, present)


def tasks_on_its_nodes(injected: FaultInEffect, history: History) -> dict[Subtask, TaskChanged]:
    """The subtasks that ran on the fault's nodes at its injection, each with its last event; none
    for a pair, of which either node may continue."""
    return _tasks_on(injected.nodes or (), history, injected.start_ns)


def ran_elsewhere(target: str, injected: FaultInEffect, history: History) -> str:
    """A message where the target names a subtask by its number and task, which ran on other nodes
    than those of the fault when it was injected; else empty."""
    named = re.fullmatch(f"the {SUBTASK.pattern}", target)
    if named is None:
        return ""
    running = {
        each.node
        for each in _last_events(history, injected.start_ns).values()
        if each.subtask == int(named[1]) and named[2] in each.name and each.state in DEPLOYED
    }
    nodes = {node for node in running if node}
    if not nodes or nodes & set(injected.nodes or ()):
        return ""
    return f"subtask {named[1]} of {named[2]} ran on {', '.join(sorted(nodes))}"


def acted_elsewhere(injected: FaultInEffect, history: History) -> Iterator[str]:
    """A message for each subtask in which the rules of a fault acted on one node, and which ran on
    others alone from the injection until the effect was recorded."""
    before = _last_events(history, injected.start_ns).values()
    since = (e for e in history.of(TaskChanged) if injected.start_ns < e.at_ns <= injected.at_ns)
    events = [*before, *since]
    for node, observed in (injected.evidence or {}).items():
        places = observed.get("at") or () if isinstance(observed, Mapping) else ()
        for place in places:
            if (named := AFFECTED.fullmatch(str(place))) is None:
                continue
            of_task = [each for each in events if named["name"] in each.name]
            nodes = {e.node for e in of_task if e.subtask == int(named["subtask"])}
            if of_task and None not in nodes and node not in nodes:
                ran_on = ", ".join(sorted(each for each in nodes if each)) or "no node"
                yield f"its rule acted in {place} on {node}, which ran on {ran_on}"


def unplaced_subtasks(injected: FaultInEffect, history: History) -> set[Subtask]:
    """The subtasks that ran at the injection on a node that is not recorded: the fault may have
    affected them. None for an exception inside a task, whose failure names the task."""
    fault = _fault_type(injected)
    if fault is not None and fault.fails_tasks:
        return set()
    until_ns = injected.start_ns
    newest = {event.place: event for event in history.of(TaskChanged) if event.at_ns <= until_ns}
    placed = _last_events(history, until_ns)
    return {
        place
        for place, event in newest.items()
        if event.state in DEPLOYED and not placed[place].node
    }


def tasks_within_reach(injected: FaultInEffect, history: History, at_ns: int) -> set[Subtask]:
    """The subtasks that the fault may end at a moment, by their nodes: of a pair, on either
    node."""
    return set(_tasks_on(nodes_of(injected), history, at_ns))


def _tasks_on(nodes: Collection[str], history: History, at_ns: int) -> dict[Subtask, TaskChanged]:
    """A task that has finished is on no node any more: nothing can end it."""
    return {
        place: last
        for place, last in _last_events(history, at_ns).items()
        if last.node in nodes and last.state != "FINISHED"
    }


def named_in_failures(history: History, after_ns: int) -> Iterator[tuple[JobFailing, str, int]]:
    """The failures of single tasks from a moment on, each with the task's name and the number of
    its subtask."""
    for event in history.of(JobFailing):
        named = TASK.fullmatch(event.task or "")
        if named is not None and event.at_ns >= after_ns:
            yield event, named["name"], int(named["ordinal"]) - 1


def _named_in_failures(
    injected: FaultInEffect, history: History, present: Mapping[Subtask, TaskChanged]
) -> set[Subtask]:
    """The tasks that the engine names in failures of one cause, the first on the fault's nodes."""
    found = [
        (event.cause or "", place)
        for event, name, subtask in named_in_failures(history, injected.start_ns)
        for place in _matching(present, subtask, exactly=name)
    ]
    return {place for cause, place in found if cause == found[0][0]}


def _named_by_evidence(
    injected: FaultInEffect, present: Mapping[Subtask, TaskChanged]
) -> set[Subtask]:
    """The tasks that the fault's own evidence names, by one of their operators."""
    evidence = injected.evidence or {}
    seen = [message for message in evidence.values() if isinstance(message, Mapping)]
    places = (AFFECTED.fullmatch(at) for message in seen for at in message.get("at", ()))
    return {
        place
        for found in places
        if found is not None
        for place in _matching(present, int(found["subtask"]), part=found["name"])
    }


def _matching(
    present: Mapping[Subtask, TaskChanged], subtask: int, exactly: str | None = None, part: str = ""
) -> Iterable[Subtask]:
    for place, last in present.items():
        if place[1] == subtask and (exactly is None or last.name == exactly) and part in last.name:
            yield place


def _last_events(history: History, until_ns: int) -> dict[Subtask, TaskChanged]:
    """The last event of each subtask. An event without a node does not replace one of the same
    attempt."""
    placed: dict[Subtask, TaskChanged] = {}
    for event in history.of(TaskChanged):
        if event.at_ns > until_ns:
            continue
        before = placed.get(event.place)
        same = before is not None and before.attempt == event.attempt
        if event.node is not None or not same:
            placed[event.place] = event
    return placed


def _fault_type(injected: FaultInEffect) -> type[Fault] | None:
    return faults.get(injected.fault)


def _touches_records(fault: type[Fault]) -> bool:
    return fault.touches == "records"
