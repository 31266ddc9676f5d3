"""The engine "zookeeper": an ensemble that elects leaders for other services and stores small
records for them.

The harness reads such a record to find the leader (`client.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from streamquake.cluster.engines import health
from streamquake.cluster.engines.engine import (
    Contents,
    NodePlan,
    PortAllocator,
    addresses_of,
    engines,
)
from streamquake.cluster.engines.service_declaration import (
    Problems,
    as_text,
    image_of,
    images_to_build,
    owned_problems,
    role_problems,
    version_problems,
)
from streamquake.cluster.engines.zookeeper import client
from streamquake.cluster.engines.zookeeper.client import ZooKeeperUnreachable
from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.topologies.model import NodeSpec, Scalar, Topology

CLIENT, QUORUM, ELECTION = 2181, 2888, 3888
CONFIG_FILE = "/opt/zookeeper/conf/zoo.cfg"
DATA = "/var/lib/zookeeper"
MEMORY_MB = 256
POLL_S = 2.0
OWNED = ("dataDir", "clientPort", "4lw.commands.whitelist")


@engines.register
class ZooKeeperEngine:
    """Runs Apache ZooKeeper."""

    name = "zookeeper"

    def roles(self) -> Mapping[str, str]:
        return {"server": "a server; several form an ensemble that works while most of them do"}

    def ports(self) -> Mapping[str, int]:
        return {"client": CLIENT, "quorum": QUORUM, "election": ELECTION}

    def problems(self, topology: Topology, service: str) -> Problems:
        declared = topology.services[service]
        return [
            *version_problems(declared, "zookeeper"),
            *role_problems(declared, self.roles(), needed=("server",)),
            *owned_problems(declared, OWNED),
        ]

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return images_to_build(topology.services[service], "zookeeper")

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        memory_mb = node.group.memory_mb or MEMORY_MB
        settings = _settings(topology, node).items()
        return NodePlan(
            image=image_of(topology, node, "zookeeper"),
            command=("server", CONFIG_FILE),
            env={"JVM_HEAP_MB": str(memory_mb * 3 // 8), "ZOO_MY_ID": str(node.ordinal)},
            files={CONFIG_FILE: "".join(f"{key}={as_text(value)}\n" for key, value in settings)},
            publish=(CLIENT,),
            memory_mb=memory_mb,
            volumes=(DATA,),
            health=health.line_check(node.host, CLIENT, "srvr", "^Mode: "),
        )

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        """None when every server serves, standalone or as a member of the ensemble."""
        for node in cluster.of_role(f"{service}/server"):
            try:
                client.require_serving(cluster.address(node, CLIENT), POLL_S)
            except ZooKeeperUnreachable as error:
                return f"{node.name}: {error}"
        return None

    def contents(self, cluster: LiveCluster, service: str) -> Contents:
        """Nothing: what it stores belongs to the services that it coordinates."""
        return {}

    def clean(self, cluster: LiveCluster, service: str, kept: Contents) -> None:
        """Do nothing, as `contents` lists nothing."""


T = TypeVar("T")


def quorum(topology: Topology, service: str) -> str:
    """The servers' addresses for clients inside the network, as a connect string."""
    return addresses_of(topology, service, "client")


def read(cluster: LiveCluster, service: str, path: str) -> bytes | None:
    """The content of a path, from the first server that answers; None where there is no such path.

    Raises ZooKeeperUnreachable when no server answers.
    """
    return _first_answer(cluster, service, lambda address: client.read(address, path, POLL_S))


def children(cluster: LiveCluster, service: str, path: str) -> tuple[str, ...]:
    """The names below a path, from the first server that answers; none where there is no such path.

    Raises ZooKeeperUnreachable when no server answers.
    """
    return _first_answer(cluster, service, lambda address: client.children(address, path, POLL_S))


def _first_answer(cluster: LiveCluster, service: str, query: Callable[[str], T]) -> T:
    last = ZooKeeperUnreachable(f"{service} has no server")
    for node in cluster.of_role(f"{service}/server"):
        try:
            return query(cluster.address(node, CLIENT))
        except ZooKeeperUnreachable as error:
            last = ZooKeeperUnreachable(f"{node.name}: {error}")
    raise last


def _settings(topology: Topology, node: NodeSpec) -> dict[str, Scalar]:
    servers = [other for other in topology.nodes() if other.role_name == node.role_name]
    ensemble: dict[str, Scalar] = {
        f"server.{other.ordinal}": f"{other.host}:{QUORUM}:{ELECTION}"
        for other in servers
        if len(servers) > 1
    }
    return {
        "tickTime": 1000,  # sessions may be as short as two ticks, as long as twenty
        "initLimit": 20,
        "syncLimit": 5,
        "admin.enableServer": False,
        **topology.services[node.service].config,
        **ensemble,
        "dataDir": DATA,
        "clientPort": CLIENT,
        "4lw.commands.whitelist": "srvr",
    }
