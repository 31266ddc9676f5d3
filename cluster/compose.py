"""A topology as docker-compose files, for people who want the cluster by hand.

Made from the same plans as a run's own containers: same images, commands, environment and
configuration. Two things differ. Ports are published at the numbers the engines use themselves,
since nobody draws free ones there; and links run direct, since nothing disturbs them.

The configuration files stand in a folder beside the document, because the inline form
(`configs: content:`) is unknown to docker-compose 1.x and to Compose before 2.23.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from streamquake.cluster.cluster import all_nodes
from streamquake.cluster.engines.engine import NodePlan, Ports, engine
from streamquake.topologies.model import NodeSpec, Topology

DOCUMENT = "docker-compose.yml"
FOLDER = "docker-compose"
HEADER = """\
# The topology {name}, to be brought up by hand:
#
#     streamquake images build && docker-compose up
#
# Written by `streamquake compose {name}`, with the files under {folder}/.
# Write it again rather than change it. Links run direct here, past the proxy that faults act on.
"""


def compose_files(topology: Topology) -> dict[str, str]:
    """The document and every configuration file it mounts: path beside the document -> text."""
    host_ports = _host_ports()
    services: dict[str, Any] = {}
    files: dict[str, str] = {}
    for spec in all_nodes(topology):
        plan = _plan(topology, spec, host_ports)
        mounts = {f"{FOLDER}/{spec.host}/{PurePosixPath(path).name}": path for path in plan.files}
        if len(mounts) < len(plan.files):
            raise ValueError(f"{spec.name}: two configuration files of one name: {[*plan.files]}")
        files |= {beside: plan.files[path] for beside, path in mounts.items()}
        services[spec.host] = _service(spec, plan, mounts, host_ports)
    header = HEADER.format(name=topology.name, folder=FOLDER)
    document = yaml.safe_dump({"services": services}, sort_keys=False, width=100)
    return {DOCUMENT: f"{header}{document}", **files}


def compose_document(topology: Topology) -> str:
    """The text of docker-compose.yml alone."""
    return compose_files(topology)[DOCUMENT]


def _plan(topology: Topology, spec: NodeSpec, host_ports: Ports) -> NodePlan:
    return engine(topology.services[spec.service].engine).plan(topology, spec, host_ports)


def _service(
    spec: NodeSpec, plan: NodePlan, mounts: Mapping[str, str], host_ports: Ports
) -> dict[str, Any]:
    limits = {
        "mem_limit": f"{plan.memory_mb}m" if plan.memory_mb else None,
        "cpus": spec.group.cpus,
    }
    service = {
        "image": plan.image,
        "command": [_literal(word) for word in plan.command],
        "hostname": spec.host,
        "environment": {
            key: _literal(value) for key, value in {**plan.env, **spec.group.env}.items()
        },
        "ports": [f"127.0.0.1:{host_ports.host(spec, port)}:{port}" for port in plan.publish],
        "volumes": [*(f"./{beside}:{path}:ro" for beside, path in mounts.items()), *plan.volumes],
        "tmpfs": [f"{path}:{options}".rstrip(":") for path, options in plan.tmpfs.items()],
        **limits,
    }
    return {key: value for key, value in service.items() if value}


def _host_ports() -> Ports:
    """Every published port at its own number, the nodes' second, third, ... at the next free."""
    given: dict[tuple[str, int], int] = {}

    def host(spec: NodeSpec, port: int) -> int:
        key = (spec.name, port)
        if key not in given:
            given[key] = next(n for n in range(port, 65_536) if n not in given.values())
        return given[key]

    return Ports(host=host)


def _literal(text: str) -> str:
    """Compose would take `$` for the beginning of a variable."""
    return text.replace("$", "$$")
