"""The engine "hdfs": one NameNode and its DataNodes.

Clients outside the network cannot connect to the DataNodes by the names that a NameNode gives. So
`fetch` reads a folder over HTTP from their published ports. Where that fails, it lets the
file-system shell in the NameNode's container copy the folder into the container, and copies it from
there through the container engine.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from streamquake.cluster.engines import health
from streamquake.cluster.engines.engine import (
    Contents,
    NodeDuty,
    NodePlan,
    PortAllocator,
    engines,
)
from streamquake.cluster.engines.hdfs.download import NotDownloaded, download
from streamquake.cluster.engines.hdfs.namenode import (
    HTTP,
    NameNodeUnreachable,
    OpenRejected,
    namenode,
    namenode_of,
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
from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.command_retry import run_again_on_failure
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import NodeSpec, Scalar, Topology

RPC, DATA, DATANODE_HTTP = 8020, 9866, 9864
FOLDER = "/var/lib/hadoop"
CONFIG = "/opt/hadoop/etc/hadoop"
MEMORY_MB = {"namenode": 576, "datanode": 448}
"""The NameNode's container also runs the file-system shell where files cannot be read over HTTP."""
FETCH_S = 300.0
HOLDING = "datanode holding "
HOLDER = NodeDuty(role="datanode", usage="datanode holding PATH", pattern=HOLDING + r"/\S+")
OWNED = (
    "fs.defaultFS",
    "dfs.namenode.rpc-bind-host",
    "dfs.namenode.http-address",
    "dfs.namenode.name.dir",
    "dfs.datanode.data.dir",
    "dfs.datanode.hostname",
)
PATHS = "paths"


class HdfsShellError(StreamquakeError):
    """The file-system shell failed; the message contains the folder and the shell's output."""

    kind = ErrorKind.CLUSTER_FAILED


@engines.register
class HdfsEngine:
    """Runs the Hadoop file system."""

    name = "hdfs"

    def roles(self) -> Mapping[str, str]:
        return {"namenode": "stores the names of all files", "datanode": "stores the blocks"}

    def ports(self) -> Mapping[str, int]:
        return {"rpc": RPC, "data": DATA, "http": HTTP}

    def problems(self, topology: Topology, service: str) -> Problems:
        declared = topology.services[service]
        roles = ("namenode", "datanode")
        return [
            *version_problems(declared, "hdfs"),
            *role_problems(declared, self.roles(), needed=roles, only_one=("namenode",)),
            *owned_problems(declared, OWNED),
        ]

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return images_to_build(topology.services[service], "hdfs")

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        memory_mb = node.group.memory_mb or MEMORY_MB[node.role]
        return NodePlan(
            image=image_of(topology, node, "hdfs"),
            command=(node.role,),
            env={"JVM_HEAP_MB": str(memory_mb * 2 // 5)},
            files={
                f"{CONFIG}/core-site.xml": _xml({"fs.defaultFS": uri(topology, node.service)}),
                f"{CONFIG}/hdfs-site.xml": _xml(_settings(topology, node)),
            },
            publish=(HTTP,) if node.role == "namenode" else (DATANODE_HTTP,),
            memory_mb=memory_mb,
            volumes=(FOLDER,),
            health=_health(topology, node),
        )

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        """None when the NameNode is out of safe mode and every DataNode reports to it."""
        name = namenode_of(cluster, service).name
        try:
            state = namenode(cluster, service).state()
            silent = _without_heartbeat(cluster, service)
        except NameNodeUnreachable as error:
            return f"{name} does not answer: {error}"
        if state is None:
            return f"{name} is still loading its names"
        declared = len(cluster.of_role(f"{service}/datanode"))
        if state["NumLiveDataNodes"] != declared:
            return f"{state['NumLiveDataNodes']} of {declared} DataNodes live"
        if silent:
            return f"no heartbeat since their start: {', '.join(silent)}"
        if state["FSState"] != "Operational":
            return f"{name} is in safe mode"
        return None

    def contents(self, cluster: LiveCluster, service: str) -> Contents:
        """All files and folders. Raises NameNodeUnreachable."""
        return {PATHS: namenode(cluster, service).paths()}

    def clean(self, cluster: LiveCluster, service: str, kept: Contents) -> None:
        """Delete files and folders, without trash. Raises NameNodeUnreachable, DeletionRejected."""
        client = namenode(cluster, service)
        known = kept.get(PATHS, frozenset())
        # A folder is listed before what is in it, which is deleted with it.
        for path in sorted(client.paths() - known):
            if path.rpartition("/")[0] in {"", *known}:
                client.delete(path)

    def duties(self) -> tuple[NodeDuty, ...]:
        return (HOLDER,)

    def on_duty(self, cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
        """The first DataNode with the first block of a file."""
        path = duty.removeprefix(HOLDING)
        try:
            hosts = namenode(cluster, service).holders(path)
        except NameNodeUnreachable as error:
            raise LookupError(f"the DataNode with {path} is not known: {error}") from error
        datanodes = cluster.of_role(f"{service}/datanode")
        found = [node.name for node in datanodes if node.spec.host in hosts]
        if not found:
            raise LookupError(f"no DataNode of {service} holds {path}: no such file, or empty")
        return (found[0],)


def _without_heartbeat(cluster: LiveCluster, service: str) -> list[str]:
    """DataNodes without a heartbeat since their container was started: the NameNode reports an
    ended one as live for some seconds."""
    age_s = namenode(cluster, service).heartbeat_age_s()
    now_ms = cluster.clock.epoch_ms()
    return [
        node.name
        for node in cluster.of_role(f"{service}/datanode")
        if now_ms - (age_s.get(node.spec.host, 0) + 1) * 1000 < cluster.state(node).started_ms
    ]


def uri(topology: Topology, service: str) -> str:
    """The file system's address inside the network, such as `hdfs://hdfs-namenode-1:8020`."""
    return f"hdfs://{_namenode(topology, service).host}:{RPC}"


def _namenode(topology: Topology, service: str) -> NodeSpec:
    return next(n for n in topology.nodes() if n.role_name == f"{service}/namenode")


def client_settings(topology: Topology, service: str) -> dict[str, Scalar]:
    """The Hadoop settings of a client in the network, in addition to the address."""
    declared = topology.services[service]
    datanodes = declared.nodes["datanode"].count
    return {
        "dfs.replication": declared.config.get("dfs.replication", min(datanodes, 3)),
        # Connections to host names pass the links; an address from the NameNode might bypass them.
        "dfs.client.use.datanode.hostname": True,
        # With fewer than four DataNodes none is left to replace a failed one.
        "dfs.client.block.write.replace-datanode-on-failure.enable": datanodes > 3,
        **_block_size(declared.nodes["datanode"].disk_mb),
    }


def _block_size(disk_mb: int | None) -> dict[str, Scalar]:
    """Small blocks on a small disk: a DataNode reserves a whole block for each open file."""
    return {} if disk_mb is None else {"dfs.blocksize": f"{max(1, disk_mb // 64)}m"}


def fetch(cluster: LiveCluster, service: str, path: str, target: Path) -> Path:
    """Copy a folder of HDFS into a folder of the host, hidden files included.

    Returns the copy's own folder below `target`. Raises HdfsShellError when the folder does not
    exist or cannot be read completely.
    """
    folder = target / path.rstrip("/").rpartition("/")[2]
    datanodes = {
        node.spec.host: cluster.address(node, DATANODE_HTTP)
        for node in cluster.of_role(f"{service}/datanode")
        if DATANODE_HTTP in node.host_ports
    }
    try:
        download(namenode(cluster, service), datanodes, path.rstrip("/"), folder)
    except (NotDownloaded, NameNodeUnreachable, OpenRejected):
        # The shell asks every DataNode that has a block, and its errors tell more.
        shutil.rmtree(folder, ignore_errors=True)
        _copy_by_shell(cluster, service, path, target)
    return folder


def _copy_by_shell(cluster: LiveCluster, service: str, path: str, target: Path) -> None:
    container = namenode_of(cluster, service).container
    copy = f"/tmp/fetch-{uuid.uuid4().hex}"
    script = 'rm -rf "$1" && mkdir -p "$1" && JVM_HEAP_MB=128 hdfs dfs -copyToLocal "$2" "$1/"'
    try:
        argv = ["sh", "-c", script, "sh", copy, path]
        done = run_again_on_failure(cluster.runtime, container, argv, FETCH_S)
        if done.exit_code != 0:
            raise HdfsShellError(f"{service}: {path} could not be read: {done.output.strip()}")
        name = path.rstrip("/").rsplit("/", 1)[-1]
        target.mkdir(parents=True, exist_ok=True)
        cluster.runtime.copy_out(container, f"{copy}/{name}", target)
    finally:
        run_again_on_failure(cluster.runtime, container, ["rm", "-rf", copy])


def _settings(topology: Topology, node: NodeSpec) -> dict[str, Scalar]:
    declared = topology.services[node.service]
    return {
        "dfs.permissions.enabled": False,
        "dfs.namenode.safemode.extension": 0,
        "dfs.namenode.datanode.registration.ip-hostname-check": False,
        # A DataNode counts as dead after 2 * 2 s + 10 * 1 s, not after ten minutes.
        "dfs.heartbeat.interval": 1,
        "dfs.namenode.heartbeat.recheck-interval": 2000,
        # By default a DataNode rejects every block on a disk with less than a gigabyte to spare.
        "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": 0,
        **client_settings(topology, node.service),
        **declared.config,
        "dfs.namenode.rpc-bind-host": "0.0.0.0",
        "dfs.namenode.http-address": f"0.0.0.0:{HTTP}",
        "dfs.namenode.name.dir": f"file://{FOLDER}/name",
        "dfs.datanode.data.dir": f"file://{FOLDER}/data",
        "dfs.datanode.hostname": node.host,
    }


def _health(topology: Topology, node: NodeSpec) -> tuple[str, ...]:
    """A NameNode answers when it has loaded its names, a DataNode when the NameNode counts it as
    live."""
    bean, expected = ("FSNamesystemState", "FSState")
    if node.role == "datanode":
        bean, expected = ("NameNodeInfo", f'LiveNodes.*"{node.host}:')
    path = f"/jmx?qry=Hadoop:service=NameNode,name={bean}"
    return health.http_check(_namenode(topology, node.service).host, HTTP, path, expected)


def _xml(settings: Mapping[str, Scalar]) -> str:
    lines = (
        f"  <property><name>{escape(key)}</name><value>{escape(as_text(value))}</value></property>"
        for key, value in settings.items()
    )
    return "\n".join(("<configuration>", *lines, "</configuration>", ""))
