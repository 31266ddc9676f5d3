"""Interrupt: the node gets INT, as from Ctrl-C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.processes import (
    ENDED,
    await_end,
    ended_evidence,
    process_baseline,
    runs_again,
    start_if_ended,
)
from streamquake.faults.requirement import Requirements
from streamquake.topologies.limits import Limit


@faults.register
class Interrupt(NodeFault):
    """End the main process with INT; heal starts it again. A program that ignores INT is not
    disturbed, and the run is undecided."""

    name: ClassVar[str] = "interrupt"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    usual: ClassVar[str] = "kafka/broker-1"
    example: ClassVar[Mapping[str, Any]] = {"within_s": 5}

    within_s: Limit = 10.0
    """Seconds in which the process must end."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        times = cluster.runtime.kill(target.container, "INT")
        await_end(cluster, target, self.within_s)
        return times

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while the main process has ended."""
        return ended_evidence(cluster.state(target), baseline)

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return ENDED

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return start_if_ended(cluster, target)
