"""Rolling restart: the nodes of a role are restarted one after the other, as in an upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.processes import (
    RUNNING_OR_REMOVED,
    end_gracefully,
    process_baseline,
    runs_again,
    start_if_ended,
    state_observations,
)
from streamquake.faults.requirement import Requirements, one_of, other_than
from streamquake.topologies.limits import Limit


@faults.register
class RollingRestart(NodeFault):
    """Stop and start each node in turn, the next when the service is ready; heal starts the nodes
    that an interrupted restart left down."""

    name: ClassVar[str] = "rolling_restart"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    lasts: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = True
    usual: ClassVar[str] = "all of hdfs/datanode"
    example: ClassVar[Mapping[str, Any]] = {"ready_s": 60}

    grace_s: Limit = 10.0
    """Seconds between TERM and KILL."""
    ready_s: Limit = 60.0
    """The longest time until the service is ready after each node, seconds."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        stopped = end_gracefully(cluster, target, self.grace_s)
        cluster.start_again(target)
        wait_until(
            lambda: cluster.pending([target.spec.service]),
            what=f"{target.spec.service} ready after {target.name}",
            limit_s=self.ready_s,
            clock=cluster.clock,
        )
        return stopped

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the node runs and was restarted since. A restart cannot be undone, so the
        fault counts as healed as soon as the node runs."""
        state = cluster.state(target)
        started = state.started_at != baseline.get("started_at", state.started_at)
        return Evidence(
            in_effect=state.status == ContainerStatus.RUNNING and started,
            healed=state.status in RUNNING_OR_REMOVED,
            observations=state_observations(state),
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "status": one_of(str(ContainerStatus.RUNNING)),
            "started_at": other_than(before.get("started_at")),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return start_if_ended(cluster, target)
