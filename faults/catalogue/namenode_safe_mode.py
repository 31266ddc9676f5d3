"""NameNode in safe mode: files can be read, but not written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable, namenode
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.requirement import Requirements, one_of, other_than, text_with
from streamquake.topologies.model import Topology

PROBE = "/streamquake-probe"
OPERATIONAL = "Operational"
ADMIN_LIMIT_S = 30.0
HEAP_MB = 64
"""The heap of the administration tool, which runs in the NameNode's container and shares its
memory."""
SAFE_MODE = "SafeMode"
"""A part of the name of the exception that rejects a change in safe mode."""


@faults.register
class NameNodeSafeMode(NodeFault):
    """Bring the NameNode into safe mode, as an administrator or too few reported blocks do; it
    rejects every write of a client until heal ends the safe mode."""

    name: ClassVar[str] = "namenode_safe_mode"
    touches: ClassVar[str] = "safe mode"
    engines: ClassVar[tuple[str, ...]] = ("hdfs",)
    usual: ClassVar[str] = "hdfs/namenode-1"

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        if role.endswith("/namenode"):
            return None
        return f"only a NameNode has a safe mode, got {role}"

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return {**_observe(cluster, target), "started_at": cluster.state(target).started_at}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        return _administer(cluster, target, "enter")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the NameNode reports it and rejects the creation of a folder for that
        reason."""
        if cluster.state(target).status == ContainerStatus.EXITED:
            return Evidence(in_effect=False, healed=True, observations={"status": "exited"})
        observations = _observe(cluster, target)
        rejected = SAFE_MODE in str(observations.get("a_new_folder"))
        operational = observations.get("state") == OPERATIONAL
        return Evidence(
            in_effect="state" in observations and not operational and rejected,
            healed=operational and not rejected,
            observations=observations,
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"state": other_than(OPERATIONAL), "a_new_folder": text_with(SAFE_MODE)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"state": one_of(OPERATIONAL)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        """Leave safe mode, unless the NameNode has ended or was restarted: a restart removes a safe
        mode that was set by command, and a NameNode that is starting cannot leave its own."""
        state, now_ns = cluster.state(target), cluster.clock.epoch_ns()
        restarted = state.started_at != baseline.get("started_at", state.started_at)
        no_safe_mode = restarted or state.status == ContainerStatus.EXITED
        if no_safe_mode or _observe(cluster, target).get("state") == OPERATIONAL:
            return until_now(cluster, now_ns, "jmx")
        return _administer(cluster, target, "leave")


def _observe(cluster: Cluster, node: Node) -> dict[str, Any]:
    """The NameNode's reported state, and the result of creating a folder; the error when it does
    not answer."""
    client = namenode(cluster, node.spec.service)
    try:
        state = client.state()
        if state is None:
            return {"unanswered": f"{node.name} is still loading its names"}
        return {"state": state["FSState"], "a_new_folder": client.rejection(PROBE) or "created"}
    except NameNodeUnreachable as error:
        return {"unanswered": str(error)}


def _administer(cluster: Cluster, node: Node, step: str) -> InjectionTimes:
    """Let Hadoop's own tool, inside the NameNode's container, change the mode."""
    called_ns = cluster.clock.epoch_ns()
    argv = ["env", f"JVM_HEAP_MB={HEAP_MB}", "hdfs", "dfsadmin", "-safemode", step]
    done = cluster.runtime.exec(node.container, argv, timeout_s=ADMIN_LIMIT_S)
    if done.exit_code != 0:
        raise ContainerError(f"{node.name}: dfsadmin -safemode {step}: {done.output.strip()}")
    return until_now(cluster, called_ns, "dfsadmin")
