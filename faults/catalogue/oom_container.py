"""Out of the container's memory: the kernel ends the main process at the memory limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerStatus,
    ExecResult,
    InjectionTimes,
)
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.mechanisms.processes import (
    ended_evidence,
    process_baseline,
    runs_again,
    start_if_ended,
    stays_down,
)
from streamquake.faults.requirement import Requirements, one_of

FILLS_WITHIN_S = 30.0
NO_LIMIT, REJECTED = 64, 65

FILL = f"""
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null ||
        cat /sys/fs/cgroup/memory/memory.limit_in_bytes) || exit {NO_LIMIT}
case $limit in max|????????????????*) exit {NO_LIMIT};; esac
echo 1000 >/proc/1/oom_score_adj || exit {REJECTED}
exec tail /dev/zero
"""
"""`tail` keeps the last line in memory, and this line never ends. `oom_score_adj` makes the kernel
kill the main process first (proc(5)). Without a limit, `tail` would fill all of the host's
memory."""

WHY = {
    NO_LIMIT: "it has no memory limit; give its nodes `memory_mb` in the topology",
    REJECTED: "its main process could not be made the first to be killed (/proc/1/oom_score_adj)",
}


@faults.register
class OomContainer(NodeFault):
    """Fill the container's memory up to its limit, so that the kernel's out-of-memory killer ends
    the node's main process; heal starts the node again."""

    name: ClassVar[str] = "oom_container"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    takes_memory: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        done = _fill(cluster, target)
        if done is not None and done.exit_code in WHY:
            raise ContainerError(f"{target.name}: {WHY[done.exit_code]}")
        return until_now(cluster, called_ns, "exec")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the main process has ended and the engine reports the out-of-memory
        killer."""
        state = cluster.state(target)
        found = ended_evidence(state, baseline)
        return Evidence(
            in_effect=found.in_effect and state.oom_killed,
            healed=found.healed,
            observations=found.observations,
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**stays_down(before), "oom_killed": one_of(True)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return start_if_ended(cluster, target)


def _fill(cluster: Cluster, node: Node) -> ExecResult | None:
    """Fill the memory; None when the container ended during the command, as expected."""
    try:
        return cluster.runtime.exec(node.container, ["sh", "-c", FILL], timeout_s=FILLS_WITHIN_S)
    except ContainerError:
        if cluster.state(node).status == ContainerStatus.EXITED:
            return None
        raise
