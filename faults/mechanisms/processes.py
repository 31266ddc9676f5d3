"""Common functions of the faults on a node's processes: end a node, inspect it, restart it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerState, ContainerStatus, InjectionTimes
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.faults.fault import Evidence
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.requirement import Requirements, has, one_of, other_text_than, other_than

RUNNING_OR_REMOVED = (ContainerStatus.RUNNING, ContainerStatus.GONE)
"""In one of these states no fault keeps the node down: it runs, or another process has removed
it."""
KILLED = 128 + 9
"""The exit code of a process that was ended by SIGKILL."""
RAN_BEFORE = has(status=other_than(str(ContainerStatus.EXITED)))
"""What `process_baseline` has of a node that had not ended before the injection."""
ENDED: Requirements = {
    "status": one_of(str(ContainerStatus.EXITED)),
    "pid": one_of(0),
    "oom_killed": one_of(False),
    "before": RAN_BEFORE,
}
"""What `ended_evidence` has of a node that is down, was not before, and had memory."""
POLL_INTERVAL_S = 0.02


def process_baseline(cluster: Cluster, node: Node) -> Mapping[str, Any]:
    """The state of the main process, by which a later start or end is distinguished from earlier
    ones."""
    state = cluster.state(node)
    return {"status": str(state.status), "pid": state.pid, "started_at": state.started_at}


def ended_evidence(
    state: ContainerState, baseline: Mapping[str, Any], **observations: Any
) -> Evidence:
    """In effect when the main process, which ran before, has ended; its exit code is the
    evidence."""
    existed_before = baseline.get("status") != ContainerStatus.EXITED
    return Evidence(
        in_effect=state.status == ContainerStatus.EXITED and existed_before,
        healed=state.status in RUNNING_OR_REMOVED,
        observations={**state_observations(state), **observations},
    )


def stays_down(before: Mapping[str, Any]) -> Requirements:
    """What `ended_evidence` has of a node that is down, was not before, and was not started
    since."""
    return {**ENDED, "started_at": one_of(before.get("started_at"))}


def runs_again(before: Mapping[str, Any]) -> Requirements:
    """What `state_observations` has of a node that was started again, or removed."""
    return {
        "status": one_of(*map(str, RUNNING_OR_REMOVED)),
        "started_at": other_text_than(before.get("started_at")),
        "pid": other_than(before.get("pid")),
    }


def state_observations(state: ContainerState) -> Mapping[str, Any]:
    """A container's state as observations of an evidence."""
    return {
        "status": str(state.status),
        "exit_code": state.exit_code,
        "oom_killed": state.oom_killed,
        "pid": state.pid,
        "started_at": state.started_at,
    }


def await_end(cluster: Cluster, node: Node, within_s: float) -> bool:
    """Wait until the main process has ended; returns whether it has."""

    def pending() -> str | None:
        status = cluster.state(node).status
        return (
            None if status in (ContainerStatus.EXITED, ContainerStatus.GONE) else f"it is {status}"
        )

    try:
        wait_until(
            pending, what=node.name, limit_s=within_s, clock=cluster.clock, every_s=POLL_INTERVAL_S
        )
    except NotReadyInTime:
        return False
    return True


def end_gracefully(cluster: Cluster, node: Node, grace_s: float) -> InjectionTimes:
    """End the main process with TERM, and with KILL if it still runs after the grace period."""
    called = cluster.runtime.kill(node.container, "TERM")
    if not await_end(cluster, node, grace_s):
        called_ns, last = called.called_ns, cluster.runtime.kill(node.container)
        return InjectionTimes(called_ns=called_ns, seen_ns=last.seen_ns, how=last.how)
    return until_now(cluster, called.called_ns, called.how)


def start_if_ended(cluster: Cluster, node: Node) -> InjectionTimes:
    """Restart the node if it has ended; a removed node is not created again."""
    if cluster.state(node).status in RUNNING_OR_REMOVED:
        return nothing_done(cluster)
    return cluster.start_again(node)
