"""Stop: the node gets TERM, as in an orderly shutdown, and KILL if it does not end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.processes import (
    KILLED,
    end_gracefully,
    ended_evidence,
    process_baseline,
    runs_again,
    start_if_ended,
    stays_down,
)
from streamquake.faults.requirement import Requirements
from streamquake.topologies.limits import Limit


@faults.register
class Stop(NodeFault):
    """Stop the node with TERM, and with KILL after a grace period; heal starts it again."""

    name: ClassVar[str] = "stop"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"grace_s": 10}

    grace_s: Limit = 10.0
    """Seconds between TERM and KILL."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        return end_gracefully(cluster, target, self.grace_s)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while the main process has ended; its exit code shows which signal ended it."""
        state = cluster.state(target)
        ended_by = None
        if state.exit_code is not None:
            ended_by = "KILL, after the grace" if state.exit_code == KILLED else "TERM"
        return ended_evidence(state, baseline, ended_by=ended_by)

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return stays_down(before)

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return start_if_ended(cluster, target)
