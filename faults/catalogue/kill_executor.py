"""Executor killed: the process that runs a worker's tasks is killed, the worker itself stays up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.mechanisms.resources import is_running, run_inside
from streamquake.faults.requirement import Requirements, all_of, has, one_of, some, without
from streamquake.topologies.model import Topology

ROLE = "worker"
INSPECT = ("pgrep", "-f", "[C]oarseGrainedExecutorBackend")


@faults.register
class KillExecutor(NodeFault):
    """Kill every executor on a worker; the master starts a new one there."""

    name: ClassVar[str] = "kill_executor"
    touches: ClassVar[str] = "executor"
    lasts: ClassVar[bool] = False
    engines: ClassVar[tuple[str, ...]] = ("spark",)
    usual: ClassVar[str] = "spark/worker-1"

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        kind = role.partition("/")[2]
        if kind != ROLE:
            return f"{cls.name} ends executors, and a {kind} runs none; target a {ROLE}"
        return None

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return {"executors": _executors(cluster, target)}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        """A worker without an executor is left as it is; the fault is then not in effect."""
        called_ns = cluster.clock.epoch_ns()
        if processes := _executors(cluster, target):
            run_inside(cluster, target, ["kill", "-KILL", *map(str, processes)])
        return until_now(cluster, called_ns, "exec")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the former executors have ended. They cannot be restored, so the fault
        counts as healed as soon as another executor runs, or where none ran before."""
        before = baseline.get("executors", [])
        now = _executors(cluster, target)
        return Evidence(
            # The master may have started another one before the first poll.
            in_effect=bool(before) and not set(before) & set(now),
            healed=bool(now) or not before,
            observations={"executors_before": before, "executors": now},
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        former = before.get("executors", ())
        return {
            "executors_before": all_of(some(), one_of(former)) if former else some(),
            "executors": without(*former),
            "before": has(executors=some()),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"executors": all_of(some(), without(*before.get("executors", ())))}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        """Nothing to do: the master starts another executor. The heal is verified when it runs."""
        return nothing_done(cluster, "the master starts another executor")


def _executors(cluster: Cluster, node: Node) -> list[int]:
    """The processes of the node's executors; empty for a node that does not run. Raises
    ContainerError where a running node does not answer: that does not prove that it has no
    executor."""
    if not is_running(cluster, node):
        return []
    try:
        done = run_inside(cluster, node, INSPECT)
    except ContainerError:
        if is_running(cluster, node):
            raise
        return []
    return [int(line) for line in done.output.split()] if done.exit_code == 0 else []
