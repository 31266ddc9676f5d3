"""An engine: how one kind of system is started, queried and stopped.

An engine is one file in `cluster/engines/` that registers itself. It plans the containers of a
service, reports why the service is not ready yet, and names its ports. Capabilities of only some
engines (run jobs, report committed records) are protocols of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, cast, runtime_checkable

from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.job import JobSpec
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.reports.record.event import EventDraft
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import NodeSpec, Scalar, Topology
from streamquake.topologies.registry import Registry

RecordEvent = Callable[[EventDraft], None]
RecordSample = Callable[[str, str, float], None]
"""Pass on one sample: series, place (node, vertex or partition), value."""


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """How one node is run; the cluster adds name, address, labels and published ports."""

    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    publish: tuple[int, ...] = ()
    """Container ports that the harness must reach through loopback."""
    memory_mb: int | None = None
    volumes: tuple[str, ...] = ()
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    health: tuple[str, ...] = ()
    """A command that exits with 0 inside the container when the node answers; empty for a node that
    answers no query. Runs query from outside (`pending`)."""


@dataclass(frozen=True, kw_only=True)
class PortAllocator:
    """The published ports that an engine's plan needs before any container exists."""

    host: Callable[[NodeSpec, int], int]
    """The loopback port that publishes a node's port."""
    manual_jobs: bool = False
    """Whether users submit the jobs manually. The settings that a run submits with each job are
    then in the cluster's own files."""


class Engine(Protocol):
    """How one kind of system is deployed and queried."""

    name: str

    def roles(self) -> Mapping[str, str]:
        """The roles this engine knows -> a description of a node of the role. Nodes of the first
        role need none of the others to serve."""
        ...

    def ports(self) -> Mapping[str, int]:
        """Port names that links may use -> container port."""
        ...

    def problems(self, topology: Topology, service: str) -> list[tuple[tuple[str, ...], str]]:
        """The problems of a service: (path below the service, message). Queries no container."""
        ...

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        """The recipes of the images to build; none for images that the topology names."""
        ...

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        """Nodes the engine needs in addition to the declared ones, such as a SQL gateway."""
        ...

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan: ...

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        """Why the service is not ready (also: not recovered), or None when it is."""
        ...


@runtime_checkable
class StartsAfter(Protocol):
    """An engine whose nodes may end at once if other services are not ready yet."""

    def after(self, topology: Topology, service: str) -> tuple[str, ...]:
        """The services that must be ready before this one is started."""
        ...


@runtime_checkable
class UsesEndpoint(Protocol):
    """An engine that can use an external system of its kind."""

    def endpoint_problem(self, endpoint: str) -> str | None:
        """Why an endpoint cannot be used here, or None. Queries no system."""
        ...


@runtime_checkable
class RunsJobs(Protocol):
    """An engine that runs jobs."""

    programs: tuple[str, ...]
    """The kinds of programs it runs, by the fields of `JobSpec` that hold them."""

    parts: Mapping[str, str]
    """Generic role -> the engine's own role: `worker` for the nodes that run tasks, `coordinator`
    for the node that plans and commits."""

    def checkpointed(self, topology: Topology, service: str, config: Mapping[str, Any]) -> bool:
        """Whether a job with these job settings takes checkpoints."""
        ...

    def submit(self, cluster: LiveCluster, service: str, job: JobSpec) -> str:
        """Submit a job and return its id. Raises JobRejected with the engine's own message."""
        ...

    def job_pending(self, cluster: LiveCluster, service: str, job: str) -> str | None:
        """Why the job does not run completely (every task running), or None when it does."""
        ...

    def drain_pending(
        self, cluster: LiveCluster, service: str, job: str, since_ms: int, *, writes_files: bool
    ) -> str | None:
        """Why output up to `since_ms` (epoch) is not committed yet, or None when it is. The engine
        may be asked to commit at once; a job that `writes_files` gets the time to close them."""
        ...

    def follow(
        self,
        cluster: LiveCluster,
        service: str,
        job: str,
        record_event: RecordEvent,
        measure: RecordSample,
        stop: threading.Event,
    ) -> None:
        """Record a job's states, tasks, checkpoints and metrics until `stop`."""
        ...

    def cancel(self, cluster: LiveCluster, service: str, job: str) -> None: ...


@runtime_checkable
class RunsSeveralJobs(Protocol):
    """An engine that runs several jobs at the same time, each by its own id."""

    shared_by_jobs: str
    """What the jobs compete for."""


@runtime_checkable
class ReportsPositions(Protocol):
    """An engine that can report how far a job has read, without waiting for commits."""

    def positions(
        self, cluster: LiveCluster, service: str, job: str, topic: str
    ) -> Mapping[int, int]:
        """Partition -> the next offset the job's running tasks will read; missing: unknown."""
        ...


@runtime_checkable
class ReportsTopics(Protocol):
    """An engine that can report which topics a job reads."""

    def topics(self, cluster: LiveCluster, service: str, job: str) -> frozenset[str]:
        """The topics that the job's running tasks read. Raises JobUnreachable."""
        ...


@runtime_checkable
class KeepsOffsets(Protocol):
    """An engine whose jobs commit their read offsets to their own log instead of a consumer
    group."""

    def committed(self, cluster: LiveCluster, service: str, topic: str) -> Mapping[int, int]:
        """Partition -> the next offset after the last known committed one; a partition without a
        known commit is missing."""
        ...


@dataclass(frozen=True, kw_only=True)
class SavepointResult:
    """A requested copy of a job's state, and its progress."""

    number: int
    """Counted up by the job, together with its checkpoints."""
    state: Literal["in progress", "completed", "failed"]
    path: str
    """The path where it is stored, once it is completed."""
    size_bytes: int
    duration_ms: int
    reason: str = ""
    """Why it failed."""


@runtime_checkable
class TakesSavepoints(Protocol):
    """An engine that copies a job's whole state on request."""

    def savepoint_problem(self, topology: Topology, service: str) -> str | None:
        """Why none can be taken on this topology, or None."""
        ...

    def take_savepoint(self, cluster: LiveCluster, service: str, job: str) -> None:
        """Request one and return when the request is accepted. Raises JobUnknown, JobRejected."""
        ...

    def savepoints(
        self, cluster: LiveCluster, service: str, job: str
    ) -> tuple[SavepointResult, ...]:
        """The savepoints that the engine remembers, newest first. Raises JobUnknown,
        JobUnreachable."""
        ...


@dataclass(frozen=True, kw_only=True)
class VertexParallelism:
    """How many parallel subtasks one vertex of a job has, and how many of them run."""

    name: str
    parallelism: int
    running: int
    wanted: int
    """The requested parallelism; the actual one is lower if slots are missing."""


@runtime_checkable
class Rescales(Protocol):
    """An engine that changes a job's parallelism while it runs."""

    def rescale_problem(self, topology: Topology, service: str) -> str | None:
        """Why it cannot be done on this topology, or None."""
        ...

    def rescale(
        self, cluster: LiveCluster, service: str, job: str, wanted: Mapping[str, int]
    ) -> None:
        """Request other parallelisms, by vertex; returns when the request is accepted. Raises
        JobUnknown, JobRejected."""
        ...

    def widths(
        self, cluster: LiveCluster, service: str, job: str
    ) -> Mapping[str, VertexParallelism]:
        """Vertex -> its present parallelism. Raises JobUnknown, JobUnreachable."""
        ...


RetainedState = Literal["checkpoint", "savepoint", "canonical"]
"""What retains a job's state after its end: its newest checkpoint, or a savepoint in the state
backend's native format or in the canonical format."""


@dataclass(frozen=True, kw_only=True)
class JobStart:
    """The progress of a job since its submission."""

    state: Literal["coming", "running", "failed"]
    """`running` once every task runs; `failed` when the job has ended for good."""
    parallelism: int = 0
    """Subtasks of its widest vertex."""
    restored_from: str = ""
    """The path of the state from which it reports to be restored; empty where it reports none."""
    reason: str = ""
    """Why it does not run."""


@runtime_checkable
class RestartsFromState(Protocol):
    """An engine that ends a job with its state retained, and starts one from such state."""

    def restart_problem(self, topology: Topology, service: str) -> str | None:
        """Why it cannot be done on this topology, or None."""
        ...

    def retained_state_problem(
        self, topology: Topology, service: str, config: Mapping[str, Any], keeping: RetainedState
    ) -> str | None:
        """Why a job with these job settings retains no such state, or None."""
        ...

    def end_and_retain_state(
        self, cluster: LiveCluster, service: str, job: str, keeping: RetainedState
    ) -> str:
        """End a job and return the path of its state when it has ended. Raises JobUnknown,
        JobRejected, NotReadyInTime."""
        ...

    def resume(
        self, cluster: LiveCluster, service: str, job: JobSpec, path: str, claim: bool
    ) -> str:
        """Submit a job that restores the state at a path; with `claim` it owns the files from then
        on. Returns its id, also if it failed at once. Raises JobRejected if no job was created."""
        ...

    def start_of(self, cluster: LiveCluster, service: str, job: str) -> JobStart:
        """The progress of the job. Raises JobUnknown, JobUnreachable."""
        ...


@runtime_checkable
class FindsRunningJobs(Protocol):
    """An engine that can find its running job, whichever process submitted it."""

    def only_job(self, cluster: LiveCluster, service: str, named: str | None = None) -> str:
        """The id of the one job that has not ended, or of the one with this name or id. Raises
        LookupError for none or several."""
        ...


OptionValues = tuple[Scalar, ...]


@dataclass(frozen=True, kw_only=True)
class JobVariations:
    """What an exploration may vary in the jobs of an engine."""

    options: Mapping[str, OptionValues]
    """Option of a job -> the values to try."""
    windows: tuple[tuple[str, str], ...]
    """The phases of its checkpoints, as the events between which a step is injected."""
    reactions: tuple[str, ...]
    """The events of a recovery, at which a further step is injected."""


@runtime_checkable
class VariesJobs(Protocol):
    """An engine of which an exploration can vary the jobs."""

    def variations(self) -> JobVariations: ...


@dataclass(frozen=True, kw_only=True)
class NodeDuty:
    """A function that one node of a role has at a time, such as leader of a partition."""

    role: str
    usage: str
    """Its notation in an experiment, such as `leader of partition N of TOPIC`."""
    pattern: str
    """The regular expression for the whole notation."""
    among: int = 1
    """The fewest nodes of the role for which one can have the duty."""


@runtime_checkable
class KnowsDuties(Protocol):
    """An engine that can find which of its nodes has a duty now."""

    def duties(self) -> tuple[NodeDuty, ...]: ...

    def on_duty(self, cluster: LiveCluster, service: str, duty: str) -> tuple[str, ...]:
        """The names of the nodes that have the duty at this moment. Raises LookupError with the
        reason when there is none."""
        ...


Contents = Mapping[str, frozenset[str]]
"""What a service holds of the kinds that runs create, such as topics or files: kind -> names."""


@runtime_checkable
class CleansUpRuns(Protocol):
    """An engine whose service can be reused by the next run."""

    def contents(self, cluster: LiveCluster, service: str) -> Contents:
        """What the service holds now that a run may have created and the next one could observe.
        Raises an error of the engine if that cannot be read completely."""
        ...

    def clean(self, cluster: LiveCluster, service: str, kept: Contents) -> None:
        """Remove everything that `contents` lists and that is not in `kept`, and return when it is
        removed. What no run changes through the harness, such as a setting, may stay: the proof
        finds it. Raises an error of the engine, or NotReadyInTime."""
        ...


@runtime_checkable
class RemembersRuns(Protocol):
    """An engine whose service remembers things of earlier runs that no clean-up removes."""

    def remembered(self, cluster: LiveCluster, service: str) -> frozenset[str]:
        """The names of what it remembers now. Raises an error of the engine if that cannot be read
        completely."""
        ...


@runtime_checkable
class CountsJobs(Protocol):
    """An engine with processes that count the jobs of all runs, which shows in a job."""

    counting_roles: tuple[str, ...]
    """The roles of these processes; they are started anew after each run."""


class JobRejected(StreamquakeError):
    """The engine rejected the job, or a request about it; the message contains its reason."""

    kind = ErrorKind.CLUSTER_FAILED


class JobUnknown(StreamquakeError, LookupError):
    """The engine answers, but does not know the job (any more)."""

    kind = ErrorKind.CLUSTER_FAILED


class JobUnreachable(StreamquakeError):
    """No process answers a request about the job now; a retry may help."""

    kind = ErrorKind.CLUSTER_FAILED


engines: Registry[Engine] = Registry("engine", "streamquake.cluster.engines")


def ports_of(topology: Topology, service: str) -> Mapping[str, int]:
    """The port names that links to a service may use -> container port."""
    declared = topology.services[service]
    return {**engine(declared.engine).ports(), **declared.ports}


def addresses_of(topology: Topology, service: str, port: str) -> str:
    """A named port of every node of a service, as HOST:PORT inside the network, between commas."""
    number = ports_of(topology, service)[port]
    nodes = (node for node in topology.nodes() if node.service == service)
    return ",".join(f"{node.host}:{number}" for node in nodes)


def job_runner(topology: Topology) -> tuple[str, RunsJobs] | None:
    """The service that runs jobs, and its engine; None where there is none."""
    for name, service in topology.services.items():
        if service.engine in engines and _runs_jobs(engines[service.engine]):
            return name, cast(RunsJobs, engine(service.engine))
    return None


@cache
def _runs_jobs(kind: type[Engine]) -> bool:
    """Whether an engine runs jobs. Validation asks thousands of times, and each time Python
    compares all members of the protocol."""
    return isinstance(kind(), RunsJobs)


def engine(name: str) -> Engine:
    """The engine of this name. Raises UnknownName."""
    return engines[name]()
