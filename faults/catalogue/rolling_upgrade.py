"""Rolling upgrade: the nodes of a role are replaced one after the other, while the rest keeps
running."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster, NodeDied
from streamquake.cluster.node import Node
from streamquake.cluster.node_replacement import (
    containers_of,
    current_node,
    repair_node,
    replace_node,
    settings_of,
    usual_image,
)
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerState,
    ContainerStatus,
    InjectionTimes,
)
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.mechanisms.processes import (
    RUNNING_OR_REMOVED,
    end_gracefully,
    process_baseline,
    runs_again,
    start_if_ended,
    state_observations,
)
from streamquake.faults.requirement import Requirements, one_of
from streamquake.topologies.limits import Limit
from streamquake.topologies.model import Scalar


@faults.register
class RollingUpgrade(NodeFault):
    """Replace the container of each node in turn by one of another image or with other settings,
    the next when the service is ready; heal restores the former image and settings, also in turn.

    Name, address, ports and volumes stay; other files of the container are lost, as in any upgrade.
    Without `image` each container is recreated from its own image, as an upgrade without a new
    version: the evidence is the container's id, and heal has nothing to restore.
    """

    name: ClassVar[str] = "rolling_upgrade"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    lasts: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = True
    usual: ClassVar[str] = "all of hdfs/datanode"

    image: Annotated[str, Field(min_length=1)] | None = None
    """The image of the new containers, which the container engine must have; by default the current
    one."""
    config: Mapping[str, Scalar] = {}
    """Engine settings of the new containers, beside those of the topology."""
    grace_s: Limit = 10.0
    """Seconds between TERM and KILL for the old container."""
    ready_s: Limit = 60.0
    """The longest time until the service is ready after each node, seconds."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        node = current_node(cluster, target)
        state = cluster.state(node)
        ids = {"container": node.container, "image": state.image, "image_id": state.image_id}
        return {**process_baseline(cluster, node), **ids}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        with cluster.rolling_lock:
            node = repair_node(cluster, target)
            image = self.image or cluster.state(node).image
            replaced = self._replace(cluster, node, image, self.config)
            self._await_ready(cluster, node)
        return replaced

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the node runs in another container, of the requested image and with the
        requested settings; healed when it has the old image again, without settings of the fault,
        and no second container."""
        node = current_node(cluster, target)
        containers = containers_of(cluster, node)
        settings = settings_of(containers[0]) if containers else {}
        state = cluster.state(node)
        replaced = node.container != baseline.get("container", node.container)
        requested = self.image or baseline.get("image")
        upgraded = replaced and state.image == requested and settings == self.config
        former = state.image == _former_image(cluster, node, baseline) and not settings
        ended = state.status == ContainerStatus.GONE
        return Evidence(
            in_effect=upgraded and state.status == ContainerStatus.RUNNING,
            healed=ended
            or (former and state.status in RUNNING_OR_REMOVED and len(containers) == 1),
            observations={
                **state_observations(state),
                **_identity(node, state),
                "settings": settings,
                "containers": len(containers),
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "status": one_of(str(ContainerStatus.RUNNING)),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        with cluster.rolling_lock:
            node = repair_node(cluster, target)
            state = cluster.state(node)
            if state.status == ContainerStatus.GONE:
                return nothing_done(cluster)
            former = _former_image(cluster, node, baseline)
            settings = settings_of(containers_of(cluster, node)[0])
            if state.image == former and not settings:
                return start_if_ended(cluster, node)
            replaced = self._replace(cluster, node, former, {})
            # The next node is healed even if this one does not become ready.
            with suppress(NotReadyInTime, NodeDied, ContainerError):
                self._await_ready(cluster, node)
            return replaced

    def _replace(
        self, cluster: Cluster, node: Node, image: str, settings: Mapping[str, Scalar]
    ) -> InjectionTimes:
        def end(old: Node) -> InjectionTimes:
            return end_gracefully(cluster, old, self.grace_s)

        return replace_node(cluster, node, end, image=image, settings=settings)

    def _await_ready(self, cluster: Cluster, node: Node) -> None:
        wait_until(
            lambda: cluster.pending([node.spec.service]),
            what=f"{node.spec.service} ready after {node.name}",
            limit_s=self.ready_s,
            clock=cluster.clock,
        )


def _former_image(cluster: Cluster, node: Node, baseline: Mapping[str, Any]) -> str:
    """The image that the node had before: that of the baseline, else that of the topology."""
    return str(baseline.get("image") or usual_image(cluster, node))


def _identity(node: Node, state: ContainerState) -> Mapping[str, str]:
    return {
        "container": node.container,
        "image": state.image,
        "image_id": state.image_id,
    }
