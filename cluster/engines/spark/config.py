"""The settings of Spark's processes, and the settings of submitted programs.

Master and workers read a file of defaults. A driver reads a file that is written when its program
is submitted: the required settings, the service's settings, and the job's, which take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.service_declaration import as_text
from streamquake.topologies.model import NodeSpec, Scalar, Topology

MASTER_RPC, WORKER_RPC, DRIVER_RPC, DRIVER_DATA, DATA = 7077, 7078, 7079, 7080, 7090
MASTER_UI, WORKER_UI, UI, LISTENER = 8080, 8081, 4040, 4050
MEMORY_MB = {"master": 512, "worker": 1792, "driver": 1280}
CONF = "/opt/spark/conf"
WORK = "/var/lib/spark"
"""The folder in which masters store their state, and workers the files of their executors."""
OWNED = (
    "spark.master",
    "spark.submit.deployMode",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.driver.port",
    "spark.driver.blockManager.port",
    "spark.blockManager.port",
    "spark.extraListeners",
    "spark.streamquake.port",
    "spark.local.dir",
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.driver.memory",
)

_DAEMONS: Mapping[str, Scalar] = {
    # A worker counts as lost after ten seconds without a heartbeat, not after a minute.
    "spark.worker.timeout": 10,
    # A restarted master recovers its workers and programs.
    "spark.deploy.recoveryMode": "FILESYSTEM",
    "spark.deploy.recoveryDirectory": f"{WORK}/recovery",
    # A worker creates the folders for the shuffle files and state of its executors.
    "spark.local.dir": f"{WORK}/local",
}
_PROGRAM: Mapping[str, Scalar] = {
    # A frozen or isolated executor is detected after 20 s, not after two minutes. A shorter timeout
    # would declare an executor lost that a busy small machine slows down.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # The interval at which an idle query reports that it is idle.
    "spark.sql.streaming.noDataProgressEventInterval": 1000,
}
_EXECUTOR_JVM = (
    f"-XX:+UseSerialGC -XX:-UsePerfData -Dlog4j2.configurationFile=file:{CONF}"
    "/executor-log4j2.properties"
)


def master_url(topology: Topology, service: str) -> str:
    return f"spark://{master_host(topology, service)}:{MASTER_RPC}"


def master_host(topology: Topology, service: str) -> str:
    return next(n.host for n in topology.nodes() if n.role_name == f"{service}/master")


def defaults_file(topology: Topology, service: str) -> str:
    """The text of spark-defaults.conf for masters and workers."""
    return _lines({**_DAEMONS, **topology.services[service].config})


def heap_mb(node: NodeSpec) -> int:
    """The heap of a node's program JVM; a worker's Python processes need about as much memory."""
    return (node.group.memory_mb or MEMORY_MB[node.role]) * 2 // 5


def program_file(
    topology: Topology,
    service: str,
    driver: NodeSpec,
    name: str,
    parallelism: int,
    own: Mapping[str, Any],
) -> str:
    """The text of the settings file of a submitted program."""
    worker = next(n for n in topology.nodes() if n.role_name == f"{service}/worker")
    return _lines(
        {
            **_PROGRAM,
            **_hadoop(topology),
            "spark.app.name": name,
            "spark.default.parallelism": parallelism,
            "spark.sql.shuffle.partitions": parallelism,
            "spark.executor.memory": f"{heap_mb(worker)}m",
            "spark.executor.extraJavaOptions": _EXECUTOR_JVM,
            **topology.services[service].config,
            **own,
            "spark.master": master_url(topology, service),
            "spark.submit.deployMode": "client",
            "spark.driver.host": driver.host,
            "spark.driver.bindAddress": "0.0.0.0",
            "spark.driver.port": DRIVER_RPC,
            "spark.driver.blockManager.port": DRIVER_DATA,
            "spark.blockManager.port": DATA,
            "spark.local.dir": f"{WORK}/local",
            "spark.extraListeners": "streamquake.SparkWatch",
            "spark.streamquake.port": LISTENER,
            "spark.sql.streaming.checkpointFileManagerClass": "streamquake.ToldCheckpoints",
        }
    )


def _hadoop(topology: Topology) -> dict[str, Scalar]:
    store = topology.service_of("hdfs")
    if store is None:
        return {}
    known = hdfs.client_settings(topology, store)
    settings: dict[str, Scalar] = {"fs.defaultFS": hdfs.uri(topology, store), **known}
    return {f"spark.hadoop.{key}": value for key, value in settings.items()}


def _lines(settings: Mapping[str, Any]) -> str:
    return "".join(f"{key} {as_text(value)}\n" for key, value in settings.items())
