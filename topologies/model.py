"""The topology: services, their nodes by role, and the links between them.

A node is named by service, role and number: `flink/taskmanager-2`. A role is named by its first
two parts: `flink/taskmanager`. Every part is frozen: a topology is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from streamquake.topologies.limits import LARGEST_MB, Positive

Scalar = str | int | float | bool
LONGEST_NAME = 64
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=LONGEST_NAME)]
"""The name of a part of a document. It becomes part of paths, container names and rules, so it
contains no path separator, quotation mark or line break."""
Title = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=LONGEST_NAME)]
"""The name of a document; it becomes part of host names."""


def _no_dots(name: str) -> str:
    if name in (".", ".."):
        raise ValueError(f'Kafka takes no topic called "{name}"; give it another name')
    return name


Topic = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=249), AfterValidator(_no_dots)
]
"""A name that Kafka accepts for a topic (org.apache.kafka.common.internals.Topic)."""


class Model(BaseModel):
    """The base of everything read from YAML: frozen, and unknown keys are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, strict=True)


def _group_from_count(value: Any) -> Any:
    """`broker: 3` is short for `broker: {count: 3}`."""
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return {"count": value} if is_count else value


def _one_or_more(value: Any) -> Any:
    """`rules: a.btm` is short for `rules: [a.btm]`."""
    return (value,) if isinstance(value, str) else _words(value)


def _words(value: Any) -> Any:
    """A list, as saved topologies have it in JSON."""
    return tuple(value) if isinstance(value, list) else value


def _text_from_number(value: Any) -> Any:
    """`version: 1.20` is the text 1.20: numbers of documents keep how they were written."""
    return str(value) if isinstance(value, float) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words, json_schema_input_type=list[str])]
"""A command with its arguments, or paths, as a list."""
Image = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*"
        r"(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$",
        max_length=300,
    ),
]
"""A name of an image, with a tag (https://docs.docker.com/reference/cli/docker/image/tag)."""
Version = Annotated[str, BeforeValidator(_text_from_number, json_schema_input_type=str | float)]


class NodeGroup(Model):
    """The nodes of one role: how many, and what each may use."""

    count: Annotated[int, Field(ge=1, le=64)] = 1
    """How many nodes; `broker: 3` is short for `broker: {count: 3}`."""
    slots: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many tasks a node runs at once, for roles that run tasks; 1 when left out."""
    memory_mb: Annotated[int, Field(ge=64, le=LARGEST_MB)] | None = None
    """The memory of a node's container in MiB; the engine's default for the role when left out."""
    cpus: Positive | None = None
    """Processors that a node may use, such as 0.5; no limit when left out."""
    image: Image | None = None
    """An image in place of the service's."""
    env: Mapping[str, str] = {}
    """Environment variables of the container."""
    supervised: bool = True
    """Whether a node that ends on its own during a run is restarted, as in production."""
    disk_mb: Annotated[int, Field(ge=32, le=LARGEST_MB)] | None = None
    """The size of the disk on which each node stores its data; None leaves it on the container
    engine's disk, which faults can neither fill nor slow."""
    clock: Literal["host", "adjustable"] = "host"
    """With `adjustable`, `clock_skew` can set the node's clock, but reading the time takes
    longer."""
    rules: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_one_or_more, json_schema_input_type=str | list[str] | None),
    ] = None
    """Scripts for the agent of the node's JVM, active from the JVM's start: each the name of a
    shipped script, or a file; after loading, its text. A single script needs no list."""


NodeGroupOrCount = Annotated[
    NodeGroup,
    BeforeValidator(
        _group_from_count, json_schema_input_type=NodeGroup | Annotated[int, Field(ge=1, le=64)]
    ),
]
"""The nodes of one role; documents may write only their number."""


class HttpPage(Model):
    """A page that a node serves when it is ready."""

    port: Name
    """The name of one of the service's `ports`."""
    path: Annotated[str, Field(pattern=r"^/\S*$")] = "/"
    """The path of the page, with its query."""
    status: Annotated[int, Field(ge=200, le=599)] = 200
    """The status of the answer."""


class Ready(Model):
    """When a node of the engine `container` is ready, in addition to listening on all ports of its
    service; also after a restart. (Its log does not say: it keeps the lines from before.)"""

    command: Words = ()
    """A command inside the container that exits with 0, as a list of words."""
    http: HttpPage | None = None
    """A page that is served."""


class Service(Model):
    """One system: which engine runs it, in which version, on which nodes, with which settings; or
    the endpoint of a system that already runs."""

    engine: str
    """The kind of system, by the name of its engine."""
    endpoint: str | None = None
    """Where clients reach a system that already runs, such as the bootstrap servers of a Kafka. The
    system is used as it is: it is not started, configured, disturbed or removed."""
    properties: Mapping[str, str] = {}
    """How clients log in to a Kafka at an `endpoint`: `security.protocol`, `sasl.mechanism`,
    `sasl.username`, `sasl.password`, `ssl.ca.location` and others of librdkafka. `${env:NAME}` and
    `${file:PATH}` stand for a value that no record holds."""
    version: Version | None = None
    """The release, or its line, such as "1.20"; the engine's default when left out."""
    connectors: Mapping[str, str] = {}
    """The versions of connectors that differ from those of the release, such as
    `{kafka: 3.2.0-1.19}`; of Flink only."""
    plugins: Words = ()
    """Maven coordinates of the plugins that each node loads, such as
    `org.apache.flink:flink-s3-fs-hadoop:2.2.0` for files on S3; of Flink only."""
    image: Image | None = None
    """An image in place of the one that is built for the version."""
    nodes: Mapping[Name, NodeGroupOrCount] = {}
    """Role -> the nodes of that role."""
    config: Mapping[str, Scalar] = {}
    """The engine's own settings by their keys."""
    ports: Mapping[Name, Annotated[int, Field(ge=1, le=65535)]] = {}
    """Name -> a TCP port on which the container listens; of the engine `container` only."""
    command: Words = ()
    """The arguments of the image's entry point, in place of the image's own, as a list of words; of
    the engine `container` only."""
    volumes: Words = ()
    """The folders in which the container stores its data; of the engine `container` only."""
    files: Mapping[str, str] = {}
    """Path in the container -> the text file that is put there before the container starts, beside
    the topology's file; its text once loaded. Of the engine `container` only."""
    ready: Ready | None = None
    """When a node is ready; of the engine `container` only. When left out, a node is ready when it
    listens on all `ports`."""


class Link(Model):
    """A named TCP path, from the nodes of one role to a port of another, for faults to disturb."""

    from_: Annotated[str, Field(alias="from")]
    """The role whose nodes connect, such as `flink/taskmanager`."""
    to: str
    """The role they connect to."""
    port: str | int
    """A port of that role, by its name in the engine or by number."""


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One node to deploy."""

    service: str
    role: str
    ordinal: int
    group: NodeGroup

    @property
    def name(self) -> str:
        return f"{self.service}/{self.role}-{self.ordinal}"

    @property
    def role_name(self) -> str:
        return f"{self.service}/{self.role}"

    @property
    def host(self) -> str:
        """The host name of the node inside the run's network."""
        return f"{self.service}-{self.role}-{self.ordinal}"


class Topology(Model):
    """The systems to deploy, and the links between them."""

    name: Title
    """The name that `--topology` and experiments use."""
    description: str = ""
    """What `streamquake list topologies` shows."""
    services: Mapping[Name, Service]
    """Name -> service; names of nodes begin with it."""
    links: Mapping[Name, Link] = {}
    """Name -> link, for targets such as `link sink`."""

    def nodes(self) -> tuple[NodeSpec, ...]:
        """Every node, in the order in which the document names them."""
        return tuple(
            NodeSpec(service=service_name, role=role, ordinal=ordinal, group=group)
            for service_name, service in self.services.items()
            for role, group in service.nodes.items()
            for ordinal in range(1, group.count + 1)
        )

    def roles(self) -> tuple[str, ...]:
        return tuple(
            f"{name}/{role}" for name, service in self.services.items() for role in service.nodes
        )

    def service_of(self, engine: str) -> str | None:
        """The name of the first service that this engine runs, or None."""
        return next((name for name, s in self.services.items() if s.engine == engine), None)
