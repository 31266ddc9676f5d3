"""High availability: several JobManagers, of which ZooKeeper elects one as leader.

It is enabled by `high-availability.type: zookeeper` in a service's config. ZooKeeper stores the
leader's address; Flink's processes and the harness read it there.
"""

from __future__ import annotations

import re

from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.service_declaration import Problems
from streamquake.cluster.engines.zookeeper import engine as zookeeper
from streamquake.cluster.engines.zookeeper.client import ZooKeeperUnreachable
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.topologies.model import Scalar, Topology

TYPE, QUORUM, STORE = (
    "high-availability.type",
    "high-availability.zookeeper.quorum",
    "high-availability.storageDir",
)
ROOT, CLUSTER = "high-availability.zookeeper.path.root", "high-availability.cluster-id"
JOB_FOLDERS = ("jobs", "execution-plans", "jobgraphs")
"""Where Flink stores jobs in ZooKeeper, below the path of the cluster; the last name is that of
Flink 1.20."""
ADDRESS = re.compile(rb"//flink@([^:/]+):")
"""The leader's host in its published address, such as `pekko.tcp://flink@HOST:6123/user/rpc/…`."""


def is_on(topology: Topology, service: str) -> bool:
    """Whether ZooKeeper elects the leader of a Flink service's JobManagers."""
    return str(topology.services[service].config.get(TYPE, "")).lower() == "zookeeper"


def services(topology: Topology, service: str) -> tuple[str, ...]:
    """The services that high availability needs: ZooKeeper for the election, HDFS for the jobs.

    A JobManager that becomes leader before the NameNode answers ends with exit code 239.
    """
    if not is_on(topology, service):
        return ()
    found = (topology.service_of(kind) for kind in ("zookeeper", "hdfs"))
    return tuple(name for name in found if name is not None)


def settings(topology: Topology, service: str, rpc_port: int) -> dict[str, Scalar]:
    """The high-availability settings of Flink's processes; a topology's own settings take
    precedence."""
    if not is_on(topology, service):
        return {}
    found: dict[str, Scalar] = {
        ROOT: "/flink",
        CLUSTER: f"/{service}",
        "high-availability.jobmanager.port": rpc_port,
        # A killed leader is detected after this time. With a shorter one a leader on a busy small
        # machine would lose its leadership.
        "high-availability.zookeeper.client.session-timeout": "10 s",
        "high-availability.zookeeper.client.connection-timeout": "5 s",
        "high-availability.zookeeper.client.retry-wait": "1 s",
    }
    if (ensemble := topology.service_of("zookeeper")) is not None:
        found[QUORUM] = zookeeper.quorum(topology, ensemble)
    if (store := topology.service_of("hdfs")) is not None:
        found[STORE] = f"{hdfs.uri(topology, store)}/{service}/ha"
    return found


def problems(topology: Topology, service: str) -> Problems:
    """The problems of a service's high-availability settings."""
    declared = topology.services[service]
    if not is_on(topology, service):
        group = declared.nodes.get("jobmanager")
        if group is None or group.count == 1:
            return []
        message = (
            f"expected one jobmanager, got {group.count}; several need `config: {{{TYPE}: "
            "zookeeper}` and a service of the engine zookeeper"
        )
        return [(("nodes", "jobmanager"), message)]
    needed = {QUORUM: "zookeeper", STORE: "hdfs"}
    return [
        (("config", TYPE), f"needs a service of the engine {kind}, or {key}")
        for key, kind in needed.items()
        if topology.service_of(kind) is None and key not in declared.config
    ]


def leader(cluster: LiveCluster, service: str) -> Node:
    """The JobManager that leads now. Raises LookupError with the reason when none does."""
    nodes = cluster.of_role(f"{service}/jobmanager")
    elected = is_on(cluster.topology, service)
    host = _published(cluster, service) if elected else nodes[0].spec.host
    for node in nodes:
        if node.spec.host == host and _runs(cluster, node):
            return node
    raise LookupError(f"no jobmanager of {service} leads now; the last leader was {host}")


def standbys(cluster: LiveCluster, service: str) -> tuple[Node, ...]:
    """The JobManagers that run and do not lead. Raises LookupError when there is none."""
    active = leader(cluster, service)
    found = tuple(node for node in running(cluster, service) if node.name != active.name)
    if not found:
        raise LookupError(f"{active.name} is the only jobmanager of {service} that runs")
    return found


def _published(cluster: LiveCluster, service: str) -> str:
    """The host of the elected dispatcher, as published in ZooKeeper."""
    ensemble, folder = _stored(cluster, service)
    path = f"{folder}/leader/dispatcher/connection_info"
    try:
        content = zookeeper.read(cluster, ensemble, path)
    except ZooKeeperUnreachable as error:
        raise LookupError(f"the leader of {service} is not known: {error}") from error
    if (found := ADDRESS.search(content or b"")) is None:
        raise LookupError(f"no jobmanager of {service} leads now")
    return found[1].decode()


def stored_jobs(cluster: LiveCluster, service: str) -> frozenset[str]:
    """The ids of the jobs that ZooKeeper stores, from which the next leader would restore them;
    empty without high availability. Raises ZooKeeperUnreachable, LookupError."""
    if not is_on(cluster.topology, service):
        return frozenset()
    ensemble, folder = _stored(cluster, service)
    listed = (zookeeper.children(cluster, ensemble, f"{folder}/{name}") for name in JOB_FOLDERS)
    return frozenset(job for jobs in listed for job in jobs)


def _stored(cluster: LiveCluster, service: str) -> tuple[str, str]:
    """The ensemble that elects a service's leader, and the service's path there. Raises
    LookupError."""
    topology = cluster.topology
    ensemble = topology.service_of("zookeeper")
    if ensemble is None:
        raise LookupError(f"the ensemble that elects {service}'s leader is not in this topology")
    effective = {**settings(topology, service, 0), **topology.services[service].config}
    return ensemble, f"{effective[ROOT]}/{str(effective[CLUSTER]).strip('/')}"


def running(cluster: LiveCluster, service: str) -> tuple[Node, ...]:
    """The JobManagers whose containers have not ended."""
    return tuple(n for n in cluster.of_role(f"{service}/jobmanager") if _runs(cluster, n))


def _runs(cluster: LiveCluster, node: Node) -> bool:
    return cluster.state(node).status in (ContainerStatus.RUNNING, ContainerStatus.PAUSED)
