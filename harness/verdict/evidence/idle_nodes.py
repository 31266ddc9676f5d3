"""Whether a fault that ends the tasks of its nodes was injected where no task ran.

After a failover Flink may leave a TaskManager without a task. To kill it disturbs nothing, and a
held check proves nothing.
"""

from __future__ import annotations

from streamquake.harness.verdict.evidence.affected_subtasks import (
    must_end_tasks,
    tasks_on_its_nodes,
    unplaced_subtasks,
)
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged


def nodes_without_tasks(injected: FaultInEffect, history: History) -> tuple[str, ...]:
    """The nodes of a fault, if all are of a role that runs tasks and none ran one at its
    injection; else none. Where the node of a running task is not recorded, it may have been one of
    these."""
    nodes = injected.nodes or ()
    roles = {_role(event.node) for event in history.of(TaskChanged) if event.node}
    if not must_end_tasks(injected) or not all(_role(node) in roles for node in nodes):
        return ()
    if tasks_on_its_nodes(injected, history) or unplaced_subtasks(injected, history):
        return ()
    return tuple(nodes)


def _role(node: str) -> str:
    """The service and role of a node: `flink/taskmanager` of `flink/taskmanager-2`."""
    return node.rpartition("-")[0]
