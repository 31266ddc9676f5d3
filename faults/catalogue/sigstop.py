"""SIGSTOP: the main process is stopped by a signal; its sockets stay open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.mechanisms.resources import run_inside
from streamquake.faults.requirement import Requirements, one_of, other_than

INSPECT = ("cat", "/proc/1/stat")
STOPPED = "T"
"""The state of a process that a signal has stopped (proc(5))."""


@faults.register
class Sigstop(NodeFault):
    """Stop the main process with SIGSTOP; heal sends SIGCONT. The kernel keeps its sockets open and
    acknowledges received data."""

    name: ClassVar[str] = "sigstop"
    former_names: ClassVar[tuple[str, ...]] = ("stop_the_world",)
    touches: ClassVar[str] = "process"

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        return cluster.runtime.kill(target.container, "STOP")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while /proc of the node shows its main process as stopped."""
        status = cluster.state(target).status
        if status != ContainerStatus.RUNNING:
            # A paused container hides the state of its process, so it does not prove the heal.
            paused = status == ContainerStatus.PAUSED
            return Evidence(
                in_effect=False, healed=not paused, observations={"status": str(status)}
            )
        line = run_inside(cluster, target, INSPECT).output
        state = line.rpartition(")")[2].split()[:1]
        return Evidence(
            in_effect=state == [STOPPED],
            healed=bool(state) and state != [STOPPED],  # no output proves neither
            observations={"status": str(status), "process_state": "".join(state)},
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"status": one_of(str(ContainerStatus.RUNNING)), "process_state": one_of(STOPPED)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "status": other_than(str(ContainerStatus.PAUSED)),
            "process_state": other_than(STOPPED),
        }

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if cluster.state(target).status == ContainerStatus.GONE:
            return nothing_done(cluster)
        return cluster.runtime.kill(target.container, "CONT")
