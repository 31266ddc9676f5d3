"""The engine "container": any other system, from an image that is there or can be fetched.

Faults on nodes and links work on it as on other systems, since they act from outside its container.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from posixpath import normpath

import requests

from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engines
from streamquake.cluster.engines.service_declaration import Problems, role_problems
from streamquake.cluster.images.recipes import ImageRecipe, recipe_named
from streamquake.cluster.images.versions import UnknownImage
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus
from streamquake.topologies.model import HttpPage, NodeGroup, NodeSpec, Service, Topology
from streamquake.topologies.problems import did_you_mean

ROLE = "server"
VOLUME = re.compile(r"/[\w./+-]+")
"""An absolute path. A colon would separate it from a folder of this machine."""
OF_KERNEL = ("/dev/", "/proc/", "/sys/")
"""The beginnings of paths that are no files of an image."""
POLL_S = 5.0
"""How long a command or a page may take to answer whether a node is ready."""
OF_ITSELF = ("127.", "[::1]", "[::ffff:127.")
"""The beginnings of addresses that only the node itself reaches."""
OF_JOBS = ("source", "sink", "output")
"""The first parts of placeholders of jobs; a service of this name would take their place."""
LONGEST_ANSWER = 200
"""Characters of a failed command's output in a message."""


@engines.register
class ContainerEngine:
    """Runs any image, such as a database or a schema registry."""

    name = "container"

    def roles(self) -> Mapping[str, str]:
        return {ROLE: "a container of the image"}

    def ports(self) -> Mapping[str, int]:
        """None: the service declares its `ports`."""
        return {}

    def problems(self, topology: Topology, service: str) -> Problems:
        declared = topology.services[service]
        return [
            *role_problems(declared, self.roles(), needed=(ROLE,)),
            *_image_problems(declared),
            *_ready_problems(declared),
            *_port_problems(service, declared),
            *_volume_problems(declared),
            *_file_problems(declared),
        ]

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        """The recipes of the images that are named as `streamquake/KIND`."""
        groups = topology.services[service].nodes.values()
        named = dict.fromkeys(_image(topology.services[service], group) for group in groups)
        return tuple(built for image in named if (built := recipe_named(image)) is not None)

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        declared = topology.services[node.service]
        image = _image(declared, node.group)
        built = recipe_named(image)
        return NodePlan(
            image=image if built is None else built.tag,
            command=declared.command,
            files=declared.files,
            publish=tuple(declared.ports.values()),
            memory_mb=node.group.memory_mb,
            volumes=declared.volumes,
            health=declared.ready.command if declared.ready else (),
        )

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        """None when every node listens on every declared port and is ready as declared."""
        declared = cluster.topology.services[service]
        for node in cluster.of_service(service):
            if (reason := _node_pending(cluster, node, declared)) is not None:
                return f"{node.name}: {reason}"
        return None


def _image(declared: Service, group: NodeGroup) -> str:
    return group.image or declared.image or ""


def _node_pending(cluster: LiveCluster, node: Node, declared: Service) -> str | None:
    if (status := cluster.state(node).status) != ContainerStatus.RUNNING:
        return f"is {status}"
    try:
        for name, port in declared.ports.items():
            if not _is_listening(cluster, node, port):
                return f"nothing listens for its peers on its port {name} ({port})"
        if declared.ready is None:
            return None
        command, page = declared.ready.command, declared.ready.http
        if command and (reason := _command_pending(cluster, node, command)):
            return reason
        return _page_pending(cluster, node, declared.ports[page.port], page) if page else None
    except ContainerError as error:  # it hangs, or has ended meanwhile: asked again
        return str(error)


def _is_listening(cluster: LiveCluster, node: Node, port: int) -> bool:
    """Whether a socket of the node accepts connections of other nodes, not only of its own."""
    sockets = ["ss", "-H", "-ltn", f"sport = :{port}"]
    done = cluster.runtime.in_network_namespace(node.container, sockets)
    addresses = [line.split()[3] for line in done.output.splitlines() if len(line.split()) > 3]
    return done.exit_code == 0 and any(not own.startswith(OF_ITSELF) for own in addresses)


def _command_pending(cluster: LiveCluster, node: Node, command: Sequence[str]) -> str | None:
    done = cluster.runtime.exec(node.container, command, timeout_s=POLL_S)
    if done.exit_code == 0:
        return None
    answer = " ".join(done.output.split())[-LONGEST_ANSWER:]
    return f"`{command[0]}` exits with {done.exit_code}: {answer or 'no output'}"


def _page_pending(cluster: LiveCluster, node: Node, port: int, page: HttpPage) -> str | None:
    try:
        with loopback_session() as session:
            url = f"http://{cluster.address(node, port)}{page.path}"
            # Only the status: a page may be a stream without an end.
            with session.get(url, timeout=POLL_S, allow_redirects=False, stream=True) as answer:
                status = answer.status_code
    except requests.RequestException as error:
        return f"{page.path} does not answer: {type(error).__name__}"
    return None if status == page.status else f"{page.path} answers {status}, not {page.status}"


def _image_problems(declared: Service) -> Problems:
    problems: Problems = []
    for role, group in declared.nodes.items():
        place = ("image",) if group.image is None else ("nodes", role, "image")
        if not (image := _image(declared, group)):
            message = "expected the image to run, such as `image: postgres:17`, got none"
            problems.append((place, message))
            continue
        try:
            recipe_named(image)
        except UnknownImage as unknown:
            problems.append((place, str(unknown)))
    hints = {
        "version": "the tag of the image",
        "connectors": "the image",
        "plugins": "the image",
        "config": "`command`, or `env` of the nodes",
    }
    problems += [
        ((key,), f"a container has no `{key}`; give it through {hint}")
        for key, hint in hints.items()
        if getattr(declared, key)
    ]
    problems += [
        (("nodes", role, "clock"), "an adjustable clock needs an image that is built here")
        for role, group in declared.nodes.items()
        if group.clock == "adjustable"
    ]
    return problems


def _ready_problems(declared: Service) -> Problems:
    ready = declared.ready
    if ready is None:
        return []
    if not any(word.strip() for word in ready.command[:1]) and ready.http is None:
        return [(("ready",), "expected `command` or `http`, or no `ready`, got neither")]
    if ready.http is not None and ready.http.port not in declared.ports:
        hint = did_you_mean(ready.http.port, declared.ports)
        return [(("ready", "http", "port"), f'`ports` has no "{ready.http.port}"{hint}')]
    return []


def _port_problems(service: str, declared: Service) -> Problems:
    problems: Problems = [
        (("ports", name), "expected a name, such as `sql`; links take a number as the port itself")
        for name in declared.ports
        if name.isdigit()
    ]
    if len(set(declared.ports.values())) < len(declared.ports):
        names = ", ".join(sorted(declared.ports))
        problems.append((("ports",), f"two of {names} are the same port"))
    if declared.ports and service in OF_JOBS:
        message = f"a job would find its ports by ${{{service}.…}}, which has another meaning"
        problems.append((("ports",), f"{message}; give the service another name"))
    return problems


def _volume_problems(declared: Service) -> Problems:
    problems: Problems = [
        (("volumes",), f"expected the path of a folder in the container, got {path!r}")
        for path in declared.volumes
        if not _is_absolute(path)
    ]
    if len(set(declared.volumes)) < len(declared.volumes):
        problems.append((("volumes",), "expected each folder once"))
    problems += [
        (("nodes", role, "disk_mb"), "the disk is the first of `volumes`, and there is none")
        for role, group in declared.nodes.items()
        if group.disk_mb is not None and not declared.volumes
    ]
    return problems


def _file_problems(declared: Service) -> Problems:
    problems: Problems = []
    for path in declared.files:
        place = ("files", path)
        if not _is_absolute(path):
            problems.append((place, f"expected the path of a file in the container, got {path!r}"))
        elif f"{path}/".startswith(OF_KERNEL):
            problems.append((place, f"{path} is the kernel's; a file there would not be seen"))
        for other in declared.files:
            if other.startswith(f"{path}/"):
                message = f"it is a folder of {other}, and a file cannot be both"
                problems.append((place, message))
    return problems


def _is_absolute(path: str) -> bool:
    return VOLUME.fullmatch(path) is not None and normpath(path) == path
