"""The engine "flink": a session cluster, and a SQL gateway that receives SQL jobs."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from streamquake.cluster.engines import health
from streamquake.cluster.engines.engine import (
    Contents,
    JobStart,
    JobUnreachable,
    JobVariations,
    NodeDuty,
    NodePlan,
    PortAllocator,
    RecordEvent,
    RecordSample,
    RetainedState,
    SavepointResult,
    VertexParallelism,
    engines,
)
from streamquake.cluster.engines.flink import duties, ha, operations, restart, submit
from streamquake.cluster.engines.flink import job as flink_job
from streamquake.cluster.engines.flink.config import (
    BLOB,
    DATA,
    GATEWAY_REST,
    INTERVAL,
    MEMORY_MB,
    OWNED,
    REST,
    RPC,
    RULES_FILE,
    TASK_RPC,
    TASK_RPC_NAME,
    config_file,
    jobmanager_of,
    version_of,
)
from streamquake.cluster.engines.flink.follow import follow
from streamquake.cluster.engines.flink.options import config_problems
from streamquake.cluster.engines.flink.positions import positions, topics
from streamquake.cluster.engines.flink.rest import (
    FlinkError,
    FlinkRest,
    FlinkUnreachable,
    gateway,
    jobmanager,
)
from streamquake.cluster.engines.flink.tasks import host_of
from streamquake.cluster.engines.flink.variations import VARIATIONS
from streamquake.cluster.engines.service_declaration import (
    Problems,
    image_of,
    images_to_build,
    owned_problems,
    role_problems,
    version_problems,
)
from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.job import JobSpec
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.topologies.model import NodeGroup, NodeSpec, Topology
from streamquake.topologies.secret_names import without_login

_HOST = r"[^\s,/:?#@]+"
_ADDRESS = rf"({_HOST}:[0-9]{{1,5}}|https?://{_HOST}(:[0-9]{{1,5}})?(/[^\s,?#]*)?)"
ENDPOINT = re.compile(f"{_ADDRESS}(,{_ADDRESS})*")
JARS = "uploaded programs"
COMMANDS = {"gateway": "sql-gateway"}
PUBLISHED = {"jobmanager": (REST,), "gateway": (GATEWAY_REST,)}


@engines.register
class FlinkEngine:
    """Runs Apache Flink."""

    name = "flink"
    worker_role = "taskmanager"
    """The role whose nodes offer slots, one each unless the topology sets more."""
    programs = ("sql", "jar")
    shared_by_jobs = "slots"
    counting_roles = ("gateway",)
    """Its planner numbers the operators of all jobs in a row (`ExecNodeContext`), and the numbers
    are part of their names."""
    parts: Mapping[str, str] = {"worker": "taskmanager", "coordinator": "jobmanager"}

    def roles(self) -> Mapping[str, str]:
        return {
            "jobmanager": "schedules jobs and coordinates checkpoints",
            "taskmanager": "runs tasks, as many at once as it has slots (1 unless given)",
            "gateway": "takes SQL jobs; there is always one, whether declared or not",
        }

    def ports(self) -> Mapping[str, int]:
        return {"rest": REST, "rpc": RPC, "blob": BLOB, "data": DATA, TASK_RPC_NAME: TASK_RPC}

    def problems(self, topology: Topology, service: str) -> Problems:
        declared = topology.services[service]
        wrong_version = version_problems(declared, "flink")
        return [
            *wrong_version,
            *role_problems(
                declared,
                self.roles(),
                needed=("jobmanager", "taskmanager"),
                only_one=("gateway",),
                takes_rules=True,
            ),
            *ha.problems(topology, service),
            *owned_problems(declared, OWNED),
            *([] if wrong_version else config_problems(declared, version_of(topology, service))),
        ]

    def endpoint_problem(self, endpoint: str) -> str | None:
        if ENDPOINT.fullmatch(endpoint):
            return None
        return (
            "expected the REST interface of the JobManagers, comma-separated HOST:PORT or URL, got "
            f'"{without_login(endpoint)}"'
        )

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return images_to_build(topology.services[service], "flink")

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        if "gateway" in topology.services[service].nodes:
            return ()
        return (NodeSpec(service=service, role="gateway", ordinal=1, group=NodeGroup()),)

    def after(self, topology: Topology, service: str) -> tuple[str, ...]:
        return ha.services(topology, service)

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        memory_mb = node.group.memory_mb or MEMORY_MB[node.role]
        return NodePlan(
            image=image_of(topology, node, "flink"),
            command=(COMMANDS.get(node.role, node.role),),
            files={
                **config_file(topology, node, memory_mb, manual_jobs=ports.manual_jobs),
                **_rules(node),
            },
            publish=PUBLISHED.get(node.role, ()),
            memory_mb=memory_mb,
            volumes=("/tmp",),
            health=_health(topology, node),
        )

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        """None when every TaskManager is registered, and the gateway and every running JobManager
        answer. Of an existing Flink the JobManager must answer."""
        try:
            if cluster.topology.services[service].endpoint is not None:
                with jobmanager(cluster, service) as rest:
                    rest.get("/config")
                return None
            if (reason := _unreachable_jobmanager(cluster, service)) is not None:
                return reason
            with jobmanager(cluster, service) as rest:
                missing = _not_registered(cluster, service, rest)
            with gateway(cluster, service) as rest:
                rest.get("/v2/info")
        except (FlinkUnreachable, FlinkError) as error:
            return str(error)
        return f"not registered: {', '.join(missing)}" if missing else None

    def checkpointed(self, topology: Topology, service: str, config: Mapping[str, Any]) -> bool:
        """Decided by the interval that the job or its service sets. The job of an existing Flink is
        expected to take checkpoints."""
        if topology.services[service].endpoint is not None:
            return True
        if INTERVAL in config:
            return str(config[INTERVAL]) not in ("0", "0s", "disabled")
        return INTERVAL in topology.services[service].config

    def variations(self) -> JobVariations:
        return VARIATIONS

    def submit(self, cluster: LiveCluster, service: str, job: JobSpec) -> str:
        return submit.submit(cluster, service, job)

    def job_pending(self, cluster: LiveCluster, service: str, job: str) -> str | None:
        return flink_job.pending(cluster, service, job)

    def drain_pending(
        self, cluster: LiveCluster, service: str, job: str, since_ms: int, *, writes_files: bool
    ) -> str | None:
        return flink_job.drain_pending(cluster, service, job, since_ms, writes_files=writes_files)

    def follow(
        self,
        cluster: LiveCluster,
        service: str,
        job: str,
        record_event: RecordEvent,
        measure: RecordSample,
        stop: threading.Event,
    ) -> None:
        follow(cluster, service, job, record_event, measure, stop)

    def positions(
        self, cluster: LiveCluster, service: str, job: str, topic: str
    ) -> Mapping[int, int]:
        try:
            with jobmanager(cluster, service) as rest:
                return positions(rest, job, topic)
        except (FlinkUnreachable, FlinkError):
            return {}

    def topics(self, cluster: LiveCluster, service: str, job: str) -> frozenset[str]:
        try:
            with jobmanager(cluster, service) as rest:
                return topics(rest, job)
        except (FlinkUnreachable, FlinkError) as error:
            raise JobUnreachable(str(error)) from error

    def cancel(self, cluster: LiveCluster, service: str, job: str) -> None:
        flink_job.cancel(cluster, service, job)

    def contents(self, cluster: LiveCluster, service: str) -> Contents:
        """The jobs that have not ended, those that ZooKeeper stores, the uploaded programs, and the
        registered TaskManagers: a TaskManager that was started anew is listed twice until the
        JobManager gives up the old one, and the next job would get slots of the old one."""
        with jobmanager(cluster, service) as rest:
            listed = Counter(map(host_of, rest.get("/taskmanagers")["taskmanagers"]))
            jars = [jar["id"] for jar in rest.get("/jars")["files"]]
        return {
            "jobs": frozenset(flink_job.live_jobs(cluster, service)),
            "jobs in ZooKeeper": ha.stored_jobs(cluster, service),
            JARS: frozenset(jars),
            "registered TaskManagers": frozenset(
                f"{host} ({count} times)" for host, count in listed.items()
            ),
        }

    def clean(self, cluster: LiveCluster, service: str, kept: Contents) -> None:
        """Cancel every job and wait until their tasks have ended; then delete uploaded programs."""
        flink_job.cancel_all(cluster, service)
        with jobmanager(cluster, service) as rest:
            for jar in rest.get("/jars")["files"]:
                if jar["id"] not in kept.get(JARS, ()):
                    rest.delete(f"/jars/{jar['id']}")

    def only_job(self, cluster: LiveCluster, service: str, named: str | None = None) -> str:
        try:
            with jobmanager(cluster, service) as rest:
                return duties.only_job(service, rest, named)
        except (FlinkUnreachable, FlinkError) as error:
            raise LookupError(f"the job of {service} cannot be queried: {error}") from error

    def savepoint_problem(self, topology: Topology, service: str) -> str | None:
        return operations.savepoint_problem(topology, service)

    def take_savepoint(self, cluster: LiveCluster, service: str, job: str) -> None:
        operations.take_savepoint(cluster, service, job)

    def savepoints(
        self, cluster: LiveCluster, service: str, job: str
    ) -> tuple[SavepointResult, ...]:
        return operations.savepoints(cluster, service, job)

    def rescale_problem(self, topology: Topology, service: str) -> str | None:
        return operations.rescale_problem(topology, service)

    def rescale(
        self, cluster: LiveCluster, service: str, job: str, wanted: Mapping[str, int]
    ) -> None:
        operations.rescale(cluster, service, job, wanted)

    def widths(
        self, cluster: LiveCluster, service: str, job: str
    ) -> Mapping[str, VertexParallelism]:
        return operations.widths(cluster, service, job)

    def restart_problem(self, topology: Topology, service: str) -> str | None:
        return restart.restart_problem(topology, service)

    def retained_state_problem(
        self, topology: Topology, service: str, config: Mapping[str, Any], keeping: RetainedState
    ) -> str | None:
        return restart.retained_state_problem(topology, service, config, keeping)

    def end_and_retain_state(
        self, cluster: LiveCluster, service: str, job: str, keeping: RetainedState
    ) -> str:
        return restart.end_and_retain_state(cluster, service, job, keeping)

    def resume(
        self, cluster: LiveCluster, service: str, job: JobSpec, path: str, claim: bool
    ) -> str:
        return restart.resume(cluster, service, job, path, claim)

    def start_of(self, cluster: LiveCluster, service: str, job: str) -> JobStart:
        return restart.start_of(cluster, service, job)

    def duties(self) -> tuple[NodeDuty, ...]:
        return (duties.ACTIVE, duties.STANDBY, duties.SUBTASK)

    def on_duty(self, cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
        return duties.on_duty(cluster, service, duty)


def _rules(node: NodeSpec) -> Mapping[str, str]:
    return {} if node.group.rules is None else {RULES_FILE: "\n".join(node.group.rules)}


def _health(topology: Topology, node: NodeSpec) -> tuple[str, ...]:
    """JobManager and gateway must answer, a TaskManager must be registered at the JobManager."""
    if node.role == "gateway":
        return health.http_check(node.host, GATEWAY_REST, "/v2/info", "version")
    if node.role == "jobmanager":
        return health.http_check(node.host, REST, "/config", "flink-version")
    jobmanager = jobmanager_of(topology, node.service)
    return health.http_check(jobmanager.host, REST, "/taskmanagers", f"@{node.host}:")


def _unreachable_jobmanager(cluster: LiveCluster, service: str) -> str | None:
    """Why a JobManager that has not ended does not answer, or None when all answer."""
    for node in ha.running(cluster, service):
        try:
            with FlinkRest(cluster.address(node, REST)) as rest:
                rest.get("/config")
        except (FlinkUnreachable, FlinkError) as error:
            return f"{node.name} does not answer: {error}"
    return None


def _not_registered(cluster: LiveCluster, service: str, rest: FlinkRest) -> list[str]:
    """TaskManagers that have not sent a heartbeat since their container was started.

    The JobManager lists a killed one for a while, so being listed is not enough.
    """
    heartbeat_ms = {
        host_of(listed): int(listed["timeSinceLastHeartbeat"])
        for listed in sorted(
            rest.get("/taskmanagers")["taskmanagers"], key=lambda t: t["timeSinceLastHeartbeat"]
        )
    }
    return [
        node.name
        for node in cluster.of_role(f"{service}/taskmanager")
        if heartbeat_ms.get(node.spec.host, -1) < cluster.state(node).started_ms
    ]
