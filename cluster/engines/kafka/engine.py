"""The engine "kafka": brokers in KRaft mode, without ZooKeeper.

Each broker has several listeners, so that a link can distinguish a job's source from its sink
although both connect to the same process: INPUT and OUTPUT are for jobs, INTERNAL is for brokers
and other clients in the network, HOST for the harness, on a port published on loopback. The first
three of three or more brokers are controllers too; of fewer brokers, the first one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamquake.cluster.engines import health
from streamquake.cluster.engines.engine import (
    Contents,
    NodeDuty,
    NodePlan,
    PortAllocator,
    addresses_of,
    engines,
)
from streamquake.cluster.engines.kafka import admin, duties, log
from streamquake.cluster.engines.kafka import brokers as kafka_brokers
from streamquake.cluster.engines.kafka import contents as kafka_contents
from streamquake.cluster.engines.kafka.admin import HOST_PORT
from streamquake.cluster.engines.service_declaration import (
    Problems,
    as_text,
    image_of,
    images_to_build,
    owned_problems,
    role_problems,
    version_problems,
)
from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.topologies.model import NodeSpec, Topology
from streamquake.topologies.secret_names import without_login

INTERNAL, INPUT, OUTPUT, CONTROLLER = 9092, 9093, 9094, 9095
CONFIG_FILE = "/opt/kafka/config/server.properties"
MEMORY_MB = 768
API_VERSIONS = r"\0\0\0\012\0\022\0\0\0\0\0\0\377\377"
"""The first request of every client: its length (10), ApiVersions (18) in version 0, a correlation
id, no client id."""
BOOTSTRAP = re.compile(r"[^\s,:]+:\d+(,[^\s,:]+:\d+)*")
OWNED = (
    "process.roles",
    "node.id",
    "controller.quorum.voters",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "controller.listener.names",
    "log.dir",
    "log.dirs",
)


@engines.register
class KafkaEngine:
    """Runs Apache Kafka."""

    name = "kafka"

    def roles(self) -> Mapping[str, str]:
        return {"broker": "a broker; the first one (of three or more: three) is a controller too"}

    def ports(self) -> Mapping[str, int]:
        return {"internal": INTERNAL, "input": INPUT, "output": OUTPUT, "controller": CONTROLLER}

    def problems(self, topology: Topology, service: str) -> Problems:
        declared = topology.services[service]
        return [
            *version_problems(declared, "kafka"),
            *role_problems(declared, self.roles(), needed=("broker",)),
            *owned_problems(declared, OWNED),
        ]

    def endpoint_problem(self, endpoint: str) -> str | None:
        if BOOTSTRAP.fullmatch(endpoint):
            return None
        received = without_login(endpoint)
        return f'expected bootstrap servers, comma-separated HOST:PORT, got "{received}"'

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return images_to_build(topology.services[service], "kafka")

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        memory_mb = node.group.memory_mb or MEMORY_MB
        properties = {
            **_defaults(topology.services[node.service].nodes["broker"].count),
            **topology.services[node.service].config,
            **_identity(topology, node, ports.host(node, HOST_PORT)),
        }
        lines = (f"{key}={as_text(value)}\n" for key, value in properties.items())
        return NodePlan(
            image=image_of(topology, node, "kafka"),
            command=("broker", CONFIG_FILE),
            # The page cache does a broker's work; half of the memory is left to it.
            env={"JVM_HEAP_MB": str(memory_mb // 2)},
            files={CONFIG_FILE: "".join(lines)},
            publish=(HOST_PORT,),
            memory_mb=memory_mb,
            volumes=(log.DATA,),
            health=health.message_check(node.host, INTERNAL, API_VERSIONS),
        )

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        if cluster.topology.services[service].endpoint is not None:
            return admin.external_pending(cluster, service)
        if len(cluster.of_role(f"{service}/broker")) == 1:
            return admin.pending(cluster, service)
        # The brokers' common answer may be older than the detection of a failure. So they are
        # queried again after each has answered separately.
        return (
            admin.pending(cluster, service)
            or _silent(cluster, service)
            or admin.pending(cluster, service)
        )

    def contents(self, cluster: LiveCluster, service: str) -> Contents:
        """The topics except Kafka's internal ones, the folders of deleted ones, the consumer
        groups, the transactions that have not ended, and the changed settings."""
        return kafka_contents.contents(cluster, service)

    def clean(self, cluster: LiveCluster, service: str, kept: Contents) -> None:
        """End open transactions, fence their producers, delete topics and groups. Settings that
        were changed stay. Raises PermissionError for brokers that Streamquake did not start."""
        if (endpoint := cluster.topology.services[service].endpoint) is not None:
            raise PermissionError(
                f"Streamquake deletes no topics at {endpoint}: it did not create them"
            )
        kafka_contents.clean(cluster, service, kept)

    def remembered(self, cluster: LiveCluster, service: str) -> frozenset[str]:
        """The transactional ids with their epochs: the coordinators keep them for a week."""
        found = kafka_contents.all_transactions(cluster, service)
        return frozenset(transaction.name for transaction in found)

    def duties(self) -> tuple[NodeDuty, ...]:
        return (
            duties.LEADER,
            duties.FOLLOWER,
            duties.CONTROLLER,
            duties.COORDINATOR,
        )

    def on_duty(self, cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
        return duties.on_duty(cluster, service, duty)


def addresses(topology: Topology, service: str, port: str) -> str:
    """The brokers' addresses inside the network, on the listener with this port name; for brokers
    that Streamquake did not start, their endpoint."""
    if (endpoint := topology.services[service].endpoint) is not None:
        return endpoint
    return addresses_of(topology, service, port)


def _silent(cluster: LiveCluster, service: str) -> str | None:
    """The brokers that do not answer although the others still list them: a killed broker is
    detected only seconds later. None when each answers."""
    nodes = cluster.of_role(f"{service}/broker")
    answering = kafka_brokers.brokers(cluster, service).answering()
    silent = [node.name for node in nodes if node.spec.ordinal not in answering]
    return f"no answer yet from {', '.join(silent)}" if silent else None


def _identity(topology: Topology, node: NodeSpec, host_port: int) -> dict[str, str]:
    """The settings for the broker's id, its listeners and the controllers."""
    brokers = [other for other in topology.nodes() if other.role_name == node.role_name]
    controllers = brokers[: 3 if len(brokers) >= 3 else 1]
    voters = (f"{other.ordinal}@{other.host}:{CONTROLLER}" for other in controllers)
    listening = {"INTERNAL": INTERNAL, "INPUT": INPUT, "OUTPUT": OUTPUT, "HOST": HOST_PORT}
    advertised = {name: f"{node.host}:{port}" for name, port in listening.items()}
    advertised["HOST"] = f"127.0.0.1:{host_port}"
    if node in controllers:
        listening["CONTROLLER"] = CONTROLLER
    names = (*advertised, "CONTROLLER")
    return {
        "process.roles": "broker,controller" if node in controllers else "broker",
        "node.id": str(node.ordinal),
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "listeners": ",".join(f"{name}://0.0.0.0:{port}" for name, port in listening.items()),
        "advertised.listeners": ",".join(f"{name}://{host}" for name, host in advertised.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "log.dirs": log.FOLDER,
    }


def _defaults(brokers: int) -> dict[str, str | int]:
    """Settings for a small, quick cluster; a topology's `config` overrides them."""
    copies = min(3, brokers)
    partitions = 4 if brokers == 1 else 2 * brokers
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": max(1, copies - 1),
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": partitions,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": max(1, copies - 1),
        "transaction.state.log.num.partitions": partitions,
        # By default Flink requests an hour; the broker's default limit is 15 minutes.
        "transaction.max.timeout.ms": 3_600_000,
        "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": "false",
        # A run writes little data, and retains all of it until the verdict.
        "log.retention.hours": -1,
        # The files of a deleted topic go within a second, not a minute: the next run has its disk.
        # By default a broker begins with that, and with its recovery points, 30 s after its start.
        "log.segment.delete.delay.ms": 1_000,
        "log.initial.task.delay.ms": 1_000,
        # A killed broker is detected, and a restarted one is registered, within seconds.
        "broker.session.timeout.ms": 6_000,
        "broker.heartbeat.interval.ms": 1_000,
        # A follower that no longer reads leaves the ISR within seconds, not after half a minute.
        "replica.lag.time.max.ms": 5_000,
        # The recovery points are written to disk every second, not every minute.
        "log.flush.offset.checkpoint.interval.ms": 1_000,
    }
