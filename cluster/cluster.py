"""The cluster: a deployed topology, and the one live object that faults and engines act on."""

from __future__ import annotations

import ipaddress
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamquake.cluster.adjustable_clock import clock_env
from streamquake.cluster.disks import Disks
from streamquake.cluster.engines.engine import NodePlan, PortAllocator, StartsAfter, engine
from streamquake.cluster.links.links import Links
from streamquake.cluster.node import Node
from streamquake.cluster.run_context import RunContext
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.duplicate_containers import best_first
from streamquake.cluster.runtime.free_ports import free_port
from streamquake.cluster.runtime.log_tail import log_tail
from streamquake.cluster.runtime.runtime import (
    ContainerRuntime,
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    FoundResource,
    InjectionTimes,
    PortTaken,
)
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.cluster.sandbox import (
    has_lost_network,
    node_of,
    sandbox_spec,
    start_sandbox_if_ended,
)
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import NodeSpec, Topology

FIRST_HOST = 10
"""Lower addresses are reserved for the gateway and for helper containers."""
SHOWN_EVERY_S = 15
"""How often a wait for services that are not ready shows the reason."""
NO_EARLIER_RUNS: Mapping[str, frozenset[str]] = {}
"""What the services of a new cluster remember."""


class NodeDied(StreamquakeError):
    """A node's container ended while the harness waited for the node."""

    kind = ErrorKind.CLUSTER_FAILED


class Cluster:
    """The nodes of one run, their links, and the runtime and clock that they use."""

    def __init__(
        self, *, run_id: str, topology: Topology, runtime: ContainerRuntime, clock: Clock
    ) -> None:
        self.run_id = run_id
        self.run = RunContext(run_id=run_id)
        """The run that uses the cluster now."""
        self.topology = topology
        self.runtime = runtime
        self.clock = clock
        self.nodes: dict[str, Node] = {}
        self.planned: Mapping[str, str] = {}
        """Node name -> address, assigned before the nodes run."""
        self.clients: dict[str, Any] = {}
        """Service -> the client that its engine uses; created by the engine at its first use."""
        self.former_logs: dict[str, str] = {}
        """Node -> the logs of its former containers, which were replaced."""
        self.rolling_lock = threading.Lock()
        """Held while a fault takes down one of several nodes that must not all be down at once."""
        self.links = Links(self)
        self.disks = Disks(self)

    @contextmanager
    def used_by(
        self, run_id: str, remembered: Mapping[str, frozenset[str]] = NO_EARLIER_RUNS
    ) -> Iterator[None]:
        """The cluster has the context of this run until the end of the block; `remembered` is what
        the services remember of earlier runs."""
        self.run = RunContext(run_id=run_id, remembered=remembered)
        try:
            yield
        finally:
            self.run = RunContext(run_id=self.run_id)

    @property
    def network(self) -> str:
        return f"streamquake-{self.run_id}"

    def container_name(self, host: str) -> str:
        return f"streamquake-{self.run_id}-{host}"

    def node(self, name: str) -> Node:
        return self.nodes[name]

    def ip_of(self, name: str) -> str:
        """The address of a node, also while it is still being started."""
        return self.nodes[name].ip if name in self.nodes else self.planned[name]

    def of_role(self, role: str) -> tuple[Node, ...]:
        """The nodes of a role such as `flink/taskmanager`, by number."""
        return tuple(node for node in self.nodes.values() if node.spec.role_name == role)

    def of_service(self, service: str) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes.values() if node.spec.service == service)

    def address(self, node: Node, port: int) -> str:
        """host:port on loopback for one of the node's published ports."""
        return f"127.0.0.1:{node.host_ports[port]}"

    def state(self, node: Node) -> ContainerState:
        return self.runtime.inspect(node.container)

    def start_again(self, node: Node) -> InjectionTimes:
        """Start a stopped node. If its sandbox has ended too, that is started first. A sandbox that
        was started since its link rules were added, by whomever, gets them again."""
        start_sandbox_if_ended(self, node)
        self.links.attach(node.name, node.sandbox)
        return self.runtime.start_again(node.container)

    def pending(self, services: Iterable[str] | None = None) -> str | None:
        """Why the cluster is not ready, or None. Raises NodeDied when a container has ended."""
        for service in services or self.topology.services:
            if (reason := self._ended(self.of_service(service))) is not None:
                return reason
            reason = engine(self.topology.services[service].engine).pending(self, service)
            if reason is not None:
                return f"{service}: {reason}"
        return None

    def log_of(self, node: Node) -> str:
        """A node's log, after those of its replaced containers."""
        return self.former_logs.get(node.name, "") + self.runtime.logs(node.container)

    def save_logs(self, folder: Path) -> None:
        """Write every node's log to folder/<service-role-n>/log.txt, with the logs of its replaced
        containers; a failure does not stop the others. Raises RuntimeError that lists them."""
        errors = []
        for node in self.nodes.values():
            target = folder / node.spec.host / "log.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.write_text(self.log_of(node), encoding="utf-8")
            except Exception as error:  # noqa: BLE001 - each step of a teardown is tried
                errors.append(f"{node.name}: {error}")
        if errors:
            raise RuntimeError("logs not saved: " + "; ".join(errors))

    def fail_on_dead(self, nodes: Iterable[Node]) -> None:
        """Raise NodeDied when one of the nodes has ended, with exit code and log tail, or has lost
        its network."""
        for node in nodes:
            state = self.state(node)
            if state.status in (ContainerStatus.EXITED, ContainerStatus.GONE):
                oom = ", killed for lack of memory" if state.oom_killed else ""
                exists = state.status != ContainerStatus.GONE
                message = log_tail(self.runtime, node.container) if exists else ""
                raise NodeDied(
                    f"{node.name} ended with exit code {state.exit_code}{oom}\n{message}"
                )
            if has_lost_network(self, node, state):
                raise NodeDied(f"{node.name} has lost its network: its sandbox has ended")

    def _ended(self, nodes: Iterable[Node]) -> str | None:
        """The reason to wait for a node that has ended and will be restarted. Raises NodeDied for
        one that will not."""
        for node in nodes:
            if node.name in self.run.supervised:
                state = self.state(node)
                if state.status == ContainerStatus.EXITED:
                    return f"{node.name} has ended and will be started again"
                if has_lost_network(self, node, state):
                    return f"{node.name} has lost its network and will be started again"
            self.fail_on_dead([node])
        return None


def start_cluster(
    cluster: Cluster,
    *,
    tags: Mapping[str, str],
    limit_s: float,
    show_message: Callable[[str], None],
) -> None:
    """Create network and containers, in parallel, and wait until every service is ready; a service
    that needs others to be ready is started after them.

    `tags` are labels for all resources in addition to the run's own. After a failure the caller
    removes all resources by label (`remove_cluster`); every resource has its labels from the start.
    For external services without nodes, nothing is started. Raises NotReadyInTime, NodeDied,
    ContainerError.
    """
    specs = all_nodes(cluster.topology)
    if not specs:
        _await_services(cluster, cluster.topology.services, limit_s, show_message)
        return
    run_labels = {labels.RUN: cluster.run_id, **tags}
    subnet = cluster.runtime.create_network(cluster.network, run_labels)
    names = [spec.name for spec in specs]
    cluster.planned = dict(zip(names, _addresses(subnet), strict=False))
    cluster.links.start(run_labels, _addresses(subnet, first=4))
    cluster.disks.start(run_labels)
    waiting = _awaited(cluster.topology)
    late = [spec for spec in specs if waiting.get(spec.service)]
    _start_nodes(cluster, [spec for spec in specs if spec not in late], run_labels)
    needed = {service for services in waiting.values() for service in services}
    if late:
        _await_services(cluster, needed, limit_s, show_message)
        _start_nodes(cluster, late, run_labels)
    cluster.nodes = {name: cluster.nodes[name] for name in names}
    show_message(f"{len(cluster.nodes)} containers started")
    others = [service for service in cluster.topology.services if service not in needed]
    _await_services(cluster, others, limit_s, show_message)


def _awaited(topology: Topology) -> dict[str, tuple[str, ...]]:
    """Service -> the services that must be ready before its nodes are started."""
    runners = {name: engine(declared.engine) for name, declared in topology.services.items()}
    return {
        name: runner.after(topology, name)
        for name, runner in runners.items()
        if isinstance(runner, StartsAfter)
    }


def _start_nodes(
    cluster: Cluster, specs: Iterable[NodeSpec], run_labels: Mapping[str, str]
) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda spec: _start_node(cluster, spec, run_labels), specs))


def remove_cluster(runtime: ContainerRuntime, run_id: str) -> list[str]:
    """Remove every container and network of a run, found by label; returns the failures."""
    run_labels = {labels.RUN: run_id}
    failed = []
    with ThreadPoolExecutor(max_workers=8) as pool:
        for error in pool.map(_errors_of(runtime.remove), [c.id for c in runtime.find(run_labels)]):
            failed += error
    for network in runtime.find_networks(run_labels):
        failed += _errors_of(runtime.remove_network)(network.id)
    return failed


def _errors_of(step: Callable[[str], None]) -> Callable[[str], list[str]]:
    def step_errors(resource: str) -> list[str]:
        try:
            step(resource)
        except Exception as error:  # noqa: BLE001 - each step of a teardown is tried
            return [f"{resource}: {error}"]
        return []

    return step_errors


def all_nodes(topology: Topology) -> tuple[NodeSpec, ...]:
    """The declared nodes, and the additional nodes that the engines need. A service that runs
    already has none."""
    extra = (
        node
        for name, service in topology.services.items()
        if service.endpoint is None
        for node in engine(service.engine).extra_nodes(topology, name)
    )
    return (*topology.nodes(), *extra)


def _addresses(subnet: str, first: int = FIRST_HOST) -> Iterator[str]:
    network = ipaddress.ip_network(subnet)
    return (str(network[number]) for number in range(first, network.num_addresses - 1))


def _start_node(
    cluster: Cluster, spec: NodeSpec, run_labels: Mapping[str, str], tries: int = 5
) -> None:
    """Start a node: its sandbox, the link rules there, and its process. The node is added to the
    cluster, so that the logs of running nodes can be saved when another one fails."""
    chosen: dict[tuple[str, int], int] = {}

    def host_port(of: NodeSpec, port: int) -> int:
        return chosen.setdefault((of.name, port), free_port())

    ip = cluster.planned[spec.name]
    service = cluster.topology.services[spec.service]
    plan = engine(service.engine).plan(cluster.topology, spec, PortAllocator(host=host_port))
    published = {port: host_port(spec, port) for port in plan.publish}
    try:
        sandbox = cluster.runtime.start(sandbox_spec(cluster, spec, ip, published, run_labels))
    except PortTaken:
        if tries == 1:
            raise
        _start_node(cluster, spec, run_labels, tries - 1)
        return
    cluster.links.attach(spec.name, sandbox)
    container = cluster.runtime.start(container_spec(cluster, spec, plan, sandbox, run_labels))
    cluster.nodes[spec.name] = Node(
        spec=spec, container=container, sandbox=sandbox, ip=ip, host_ports=published
    )


def container_spec(
    cluster: Cluster,
    spec: NodeSpec,
    plan: NodePlan,
    sandbox: str,
    run_labels: Mapping[str, str],
) -> ContainerSpec:
    """The container of a node's process: its engine's plan, and the additions of the cluster."""
    volumes, disks = cluster.disks.bound(spec, plan.volumes)
    return ContainerSpec(
        name=cluster.container_name(spec.host),
        image=plan.image,
        command=plan.command,
        env={**plan.env, **clock_env(spec.group), **spec.group.env},
        files=plan.files,
        labels={**run_labels, labels.NODE: spec.name},
        beside=sandbox,
        memory_mb=plan.memory_mb,
        cpus=spec.group.cpus,
        volumes=volumes,
        disks=disks,
        tmpfs=plan.tmpfs,
    )


def attach_cluster(
    *, run_id: str, topology: Topology, runtime: ContainerRuntime, clock: Clock
) -> Cluster:
    """The cluster object for a cluster that another process started (`up`), from its labels."""
    cluster = Cluster(run_id=run_id, topology=topology, runtime=runtime, clock=clock)
    containers: dict[str, list[FoundResource]] = defaultdict(list)
    for container in runtime.find({labels.RUN: run_id, labels.NODE: ""}):
        containers[container.labels[labels.NODE]].append(container)
    sandboxes = {
        found.labels[labels.SANDBOX]: found
        for found in runtime.find({labels.RUN: run_id, labels.SANDBOX: ""})
    }
    for spec in all_nodes(topology):
        for found in best_first(runtime, containers[spec.name])[:1]:
            if spec.name in sandboxes:
                cluster.nodes[spec.name] = node_of(spec, sandboxes[spec.name], found.id)
    cluster.links.find()
    cluster.disks.find()
    return cluster


def _await_services(
    cluster: Cluster, services: Iterable[str], limit_s: float, show_message: Callable[[str], None]
) -> None:
    waiting = list(services)
    shown_ns = cluster.clock.now_ns()

    def pending() -> str | None:
        nonlocal shown_ns
        cluster.fail_on_dead(cluster.nodes.values())
        reasons = {service: cluster.pending([service]) for service in waiting}
        for service, reason in reasons.items():
            if reason is None:
                waiting.remove(service)
                show_message(f"{service} ready after {cluster.clock.now_ns() / 1e9:.1f} s")
        why = "; ".join(filter(None, reasons.values()))
        if why and cluster.clock.now_ns() - shown_ns >= SHOWN_EVERY_S * 1e9:
            shown_ns = cluster.clock.now_ns()
            show_message(f"not ready yet: {why}; at most {limit_s:g} s are waited")
        return why or None

    wait_until(pending, what="cluster ready", limit_s=limit_s, clock=cluster.clock, every_s=0.25)
