"""Pause: every process of the node is frozen; its sockets stay open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.requirement import Requirements, one_of, other_text_than


@faults.register
class Pause(NodeFault):
    """Freeze all processes of the node; no FIN is sent, so peers notice only by timeout.

    A Flink JobManager that was the leader, and was frozen until another one became leader, may stay
    unreachable after it runs again: its REST interface answered 503 as long as it was observed (90
    s), and the new leader discarded its messages as "in read-only association" (Pekko's remoting,
    between two processes that connected to each other at the same time; observed with a fifth of a
    processor per node). A run then correctly reports that the cluster did not recover; a restart of
    that JobManager fixes it.
    """

    name: ClassVar[str] = "pause"
    touches: ClassVar[str] = "process"

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        return cluster.runtime.pause(target.container)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while the container engine reports the node as paused."""
        paused = (status := cluster.state(target).status) == ContainerStatus.PAUSED
        return Evidence(in_effect=paused, healed=not paused, observations={"status": str(status)})

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"status": one_of(str(ContainerStatus.PAUSED))}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"status": other_text_than(str(ContainerStatus.PAUSED))}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if cluster.state(target).status == ContainerStatus.GONE:
            return nothing_done(cluster)
        return cluster.runtime.unpause(target.container)
