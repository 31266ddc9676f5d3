"""The configuration of Flink's processes, and the part that must be submitted with each job.

A client submits a job with the client's own configuration: checkpoint, restart, state and table
options in the cluster's file do not apply to it. So the job options of a service's `config` are
submitted with every job (`job_settings`); the job's own settings take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import yaml

from streamquake.cluster.engines.flink import ha
from streamquake.cluster.engines.flink.options import as_read_by, duration_ms, line_of
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.service_declaration import as_text
from streamquake.cluster.images.flink_lines import lines_of
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.jvm_agent import agent_option
from streamquake.topologies.model import NodeSpec, Scalar, Topology

RPC, TASK_RPC, DATA, BLOB, REST, GATEWAY_REST = 6123, 6122, 6125, 6124, 8081, 8083
MEMORY_MB = {"jobmanager": 896, "taskmanager": 1024, "gateway": 896}
TASK_RPC_NAME = "task-rpc"
CONFIG_FOLDER = "/opt/flink/conf"
FIRST_WITH_YAML = (1, 19)
"""Older releases read another file, of lines."""
LOCAL_CHECKPOINTS = "file:///tmp/streamquake/checkpoints"
"""Without HDFS: on the JobManager's and each TaskManager's own disk. That is enough as long as no
node loses its disk."""
SPREAD = "taskmanager.load-balance.mode"
RULES_FILE = f"{CONFIG_FOLDER}/streamquake.btm"
RULE_CLASSES = "/opt/streamquake/rule-classes.jar"
"""In the image; what rules may call."""
INTERVAL = "execution.checkpointing.interval"
JOB_PREFIXES = ("execution.", "restart-strategy", "state.", "pipeline.", "table.", "parallelism.")
OWNED = (
    "jobmanager.rpc.address",
    "jobmanager.rpc.port",
    "jobmanager.bind-host",
    "rest.address",
    "rest.port",
    "rest.bind-address",
    "taskmanager.host",
    "taskmanager.bind-host",
    "taskmanager.rpc.port",
    "taskmanager.data.port",
    "taskmanager.numberOfTaskSlots",
    "blob.server.port",
    "sql-gateway.endpoint.rest.address",
    "sql-gateway.endpoint.rest.port",
    "sql-gateway.endpoint.rest.bind-address",
    "high-availability.jobmanager.port",
)

_CLUSTER: Mapping[str, Scalar] = {
    # Polls need recent data: the REST handlers answer from caches that may be this old.
    "web.refresh-interval": "100 ms",
    "rest.cache.checkpoint-statistics.timeout": "20 ms",
    "metrics.fetcher.update-interval": "500 ms",
    # A fetch of all metrics waits this long for a TaskManager that was killed or frozen; with the
    # default of ten minutes no metric is updated after a kill.
    "web.timeout": "10 s",
    # Enough entries for gaps in the polling, few enough to be sent ten times a second.
    "web.checkpoints.history": 30,
    # A killed TaskManager is detected after two failed heartbeats, a frozen one after ten seconds.
    # A shorter timeout would declare a JVM dead that a busy small machine slows down.
    "heartbeat.interval": "1 s",
    "heartbeat.timeout": "10 s",
    # Tasks are spread over all TaskManagers: channels cross the network, and a kill does not end
    # all tasks.
    SPREAD: "SLOTS",
    # For a process of one gigabyte: Flink's defaults would leave 26 MB of heap for tasks.
    "taskmanager.memory.jvm-metaspace.size": "192m",
    "taskmanager.memory.jvm-overhead.min": "128m",
    "taskmanager.memory.framework.heap.size": "64m",
    "taskmanager.memory.managed.fraction": 0.15,
    "jobmanager.memory.jvm-metaspace.size": "192m",
    "jobmanager.memory.jvm-overhead.min": "128m",
}
_JOB: Mapping[str, Scalar] = {
    # Without checkpoints no exactly-once sink commits. The value "disabled" disables them.
    INTERVAL: "2 s",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 2_147_483_647,
    "restart-strategy.fixed-delay.delay": "500 ms",
}


def version_of(topology: Topology, service: str) -> str:
    """The release or the line of a Flink service."""
    return topology.services[service].version or recipe("flink").release


def lost_after_s(topology: Topology, service: str) -> float:
    """How long a process must be silent before Flink regards it as lost, seconds: the time-out,
    counted from a heartbeat that may be an interval old. Infinite where it cannot be read."""
    settings = {**_CLUSTER, **topology.services[service].config}
    durations = [duration_ms(settings[f"heartbeat.{name}"]) for name in ("timeout", "interval")]
    return sum(inf if each is None else each / 1000 for each in durations)


def config_file(
    topology: Topology, node: NodeSpec, memory_mb: int, *, manual_jobs: bool = False
) -> dict[str, str]:
    """The path of a node's configuration file, and its text; `manual_jobs` as in
    `PortAllocator`."""
    version = version_of(topology, node.service)
    options = as_read_by(version, _settings(topology, node, memory_mb, manual_jobs))
    if SPREAD not in options:
        options["cluster.evenly-spread-out-slots"] = True
    texts = {key: as_text(value) for key, value in options.items()}
    if line_of(version) >= FIRST_WITH_YAML:
        return {f"{CONFIG_FOLDER}/config.yaml": yaml.safe_dump(texts)}
    return {f"{CONFIG_FOLDER}/flink-conf.yaml": lines_of(texts)}


def _settings(
    topology: Topology, node: NodeSpec, memory_mb: int, manual_jobs: bool
) -> dict[str, Scalar]:
    service = topology.services[node.service]
    # A JobManager gets its own address. The other nodes get the address of the first JobManager;
    # with high availability they query ZooKeeper instead.
    is_jobmanager = node.role == "jobmanager"
    jobmanager = node.host if is_jobmanager else jobmanager_of(topology, node.service).host
    of_jobs = job_settings(topology, node.service)
    settings = {
        **_CLUSTER,
        **_hadoop(topology),
        **ha.settings(topology, node.service, RPC),
        **of_jobs,
        "jobmanager.memory.process.size": f"{memory_mb}m",
        "taskmanager.memory.process.size": f"{memory_mb}m",
        **service.config,
        "jobmanager.rpc.address": jobmanager,
        "jobmanager.rpc.port": RPC,
        "jobmanager.bind-host": "0.0.0.0",
        "blob.server.port": BLOB,
        "rest.address": jobmanager,
        "rest.port": REST,
        "rest.bind-address": "0.0.0.0",
        "taskmanager.host": node.host,
        "taskmanager.bind-host": "0.0.0.0",
        "taskmanager.rpc.port": _task_rpc(topology, node.service),
        "taskmanager.data.port": DATA,
        "taskmanager.numberOfTaskSlots": node.group.slots or 1,
        **(_gateway(node) if node.role == "gateway" else {}),
        **_agent(node, service.config),
    }
    # In a run the interval is submitted with each job and is not in the file: a job cannot override
    # a value in the file by "no checkpoints".
    options = {key: value for key, value in settings.items() if key != INTERVAL}
    if manual_jobs and INTERVAL in of_jobs:
        options[INTERVAL] = of_jobs[INTERVAL]
    return options


def _task_rpc(topology: Topology, service: str) -> int:
    """The TaskManager's RPC port: another one at each start (0), unless a link needs a fixed one.

    A TaskManager that restarts with its old address and port can collide with the JobManager's
    attempts to reconnect. When both connect at once, Pekko keeps an association that discards
    incoming messages ("in read-only association"), and the TaskManager never registers.
    """
    wanted = (link.port for link in topology.links.values() if link.to.startswith(f"{service}/"))
    return TASK_RPC if {TASK_RPC, TASK_RPC_NAME} & set(wanted) else 0


def _agent(node: NodeSpec, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The configured JVM flags and the flag of the rule agent, for a node with rules."""
    if node.group.rules is None:
        return {}
    key = f"env.java.opts.{'sql-gateway' if node.role == 'gateway' else node.role}"
    return {key: f"{options.get(key, '')} {agent_option(RULES_FILE, RULE_CLASSES)}".strip()}


def job_settings(
    topology: Topology, service: str, own: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The settings to submit a job with: defaults, the service's job-level ones, the job's own."""
    declared = topology.services[service].config
    settings = {
        **_JOB,
        "execution.checkpointing.dir": _checkpoint_dir(topology, service),
        **{key: value for key, value in declared.items() if key.startswith(JOB_PREFIXES)},
        **(own or {}),
    }
    if settings[INTERVAL] == "disabled":
        del settings[INTERVAL]
    return {key: as_text(value) for key, value in settings.items()}


def jobmanager_of(topology: Topology, service: str) -> NodeSpec:
    return next(n for n in topology.nodes() if n.role_name == f"{service}/jobmanager")


def _checkpoint_dir(topology: Topology, service: str) -> str:
    store = topology.service_of("hdfs")
    if store is None:
        return LOCAL_CHECKPOINTS
    return f"{hdfs.uri(topology, store)}/{service}/checkpoints"


def _hadoop(topology: Topology) -> dict[str, Scalar]:
    store = topology.service_of("hdfs")
    if store is None:
        return {}
    known = hdfs.client_settings(topology, store)
    settings: dict[str, Scalar] = {"fs.defaultFS": hdfs.uri(topology, store), **known}
    return {f"flink.hadoop.{key}": value for key, value in settings.items()}


def _gateway(node: NodeSpec) -> dict[str, Scalar]:
    return {
        "execution.target": "remote",
        "sql-gateway.endpoint.rest.address": node.host,
        "sql-gateway.endpoint.rest.bind-address": "0.0.0.0",
        "sql-gateway.endpoint.rest.port": GATEWAY_REST,
    }
