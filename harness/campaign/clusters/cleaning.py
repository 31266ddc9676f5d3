"""The clean-up of a cluster after a run, and the proof that nothing of the run is left.

Processes without a network, and those that count jobs, are started again first. Then jobs are
ended, processes that hold an agent are restarted, and every service removes what the run created.
The proof is the state that is read afterwards: it must be equal to the state just after the
deployment, except for a little more space in use on disks. A node whose state differs is started
anew, with a new sandbox; if it still differs, the cluster cannot be used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import Contents, CountsJobs, RemembersRuns, engine
from streamquake.cluster.jvm_agent import JvmAgent
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.cluster.sandbox import has_lost_network
from streamquake.harness.campaign.clusters.state import (
    ClusterState,
    cleaner,
    counts,
    differences,
    first_difference,
    read_state,
)
from streamquake.harness.experiment.job_placeholders import runs_jobs

READY_S = 120.0
"""How long a cluster may take until all its services are ready after restarts of its nodes."""
SETTLED_S = 30.0
"""How long a service may take to notice the loss of a node, such as by heartbeats."""
NOTHING: Contents = {}


@dataclass(frozen=True, kw_only=True)
class CleanUp:
    """A clean-up whose proof succeeded."""

    restarted: tuple[str, ...]
    """The nodes that were started anew."""
    equal: Mapping[str, int]
    """Kind -> how many things of it the cluster has, the same as after its deployment."""
    remembered: Mapping[str, frozenset[str]]
    """Service -> what it remembers of the runs so far, and no clean-up removes."""
    seconds: float

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of its event in the history of the next run."""
        return {
            "restarted": list(self.restarted),
            "equal": dict(self.equal),
            "seconds": round(self.seconds, 3),
        }


def clean_up(cluster: Cluster, deployed: ClusterState, *, had_agents: bool) -> CleanUp:
    """Bring a cluster back to the state that it had after its deployment. With `had_agents`, the
    nodes are asked for agents in their processes.

    Raises CannotCleanUp, NotReadyInTime with what is left, NodeDied, and errors of the engines and
    the runtime.
    """
    began_ns = cluster.clock.epoch_ns()
    services = sorted(
        cluster.topology.services,
        key=lambda name: not runs_jobs(cluster.topology.services[name].engine),
    )
    lost = [
        node
        for node in cluster.nodes.values()
        if has_lost_network(cluster, node, cluster.state(node))
    ]
    counting = [node for node in _counting_jobs(cluster) if node not in lost]
    restarted = _restart(cluster, [*lost, *counting], with_sandbox=False)
    if lost:  # the services clean up only when they answer
        _await_ready(cluster)
    for service in services:
        cleaner(cluster, service).clean(cluster, service, deployed.contents.get(service, NOTHING))
        stateful = _with_rules(cluster, service)
        if had_agents:
            stateful += [n for n in _with_agent(cluster, service) if n not in stateful]
        restarted += _restart(cluster, stateful, with_sandbox=False)
    _await_ready(cluster)
    changed = differences(deployed, read_state(cluster))
    if dirty := [cluster.nodes[name] for name in changed if name in cluster.nodes]:
        restarted += _restart(cluster, dirty, with_sandbox=True)
        _await_ready(cluster)
    _await_state(cluster, deployed)
    return CleanUp(
        restarted=tuple(sorted(set(restarted))),
        equal=counts(deployed),
        remembered=_remembered(cluster),
        seconds=(cluster.clock.epoch_ns() - began_ns) / 1e9,
    )


def _remembered(cluster: Cluster) -> Mapping[str, frozenset[str]]:
    """What the services remember. Raises errors of the engines."""
    runners = {name: engine(each.engine) for name, each in cluster.topology.services.items()}
    return {
        name: runner.remembered(cluster, name)
        for name, runner in runners.items()
        if isinstance(runner, RemembersRuns)
    }


def _counting_jobs(cluster: Cluster) -> list[Node]:
    """The nodes whose processes count jobs: the next job must not depend on how many there were."""
    return [
        node
        for name, service in cluster.topology.services.items()
        if isinstance(runner := engine(service.engine), CountsJobs)
        for role in runner.counting_roles
        for node in cluster.of_role(f"{name}/{role}")
    ]


def _with_agent(cluster: Cluster, service: str) -> list[Node]:
    """The nodes of a service in whose process an agent listens."""
    return [
        node
        for node in cluster.of_service(service)
        if JvmAgent(cluster.runtime, node.container).rules() is not None
    ]


def _with_rules(cluster: Cluster, service: str) -> list[Node]:
    """The nodes of a service with rules in the topology: their counters and flags stay in the
    process."""
    return [node for node in cluster.of_service(service) if node.spec.group.rules is not None]


def _restart(cluster: Cluster, nodes: Iterable[Node], *, with_sandbox: bool) -> list[str]:
    """End the processes of some nodes, or their sandboxes too, and start them again, in sandboxes
    that run; returns their names."""
    names = []
    for node in nodes:
        cluster.runtime.kill(node.container)
        if with_sandbox:
            cluster.runtime.kill(node.sandbox)
        cluster.start_again(node)
        names.append(node.name)
    return names


def _await_ready(cluster: Cluster) -> None:
    wait_until(cluster.pending, what="cluster ready again", limit_s=READY_S, clock=cluster.clock)


def _await_state(cluster: Cluster, deployed: ClusterState) -> None:
    """Wait until the state is equal to that after the deployment. What a service removes in its own
    time, such as a lost worker, is gone after some seconds. Raises NotReadyInTime with the first
    difference."""

    def pending() -> str | None:
        return first_difference(deployed, read_state(cluster))

    wait_until(
        pending,
        what="cluster as after its deployment",
        limit_s=SETTLED_S,
        clock=cluster.clock,
        every_s=0.5,
    )
