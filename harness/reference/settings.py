"""The settings that the engines' plans give to each role, read from the plans themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from xml.etree import ElementTree

import yaml

from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engine
from streamquake.cluster.engines.flink.config import job_settings
from streamquake.cluster.engines.flink.options import defaults
from streamquake.cluster.engines.spark.config import program_file
from streamquake.harness.reference.markdown import GENERATED
from streamquake.topologies.loader import load_topology
from streamquake.topologies.model import Topology

HEAD = f"""# Settings of the engines

The settings with which each role is started, on the shipped topologies named below; all others have
the engine's own defaults. The `config` of a service overrides these settings, and the `config` of a
job overrides those of each job. Addresses, ports and folders are left out here.

Time-outs are short, so that a failure is detected within the minutes of a run, and memory is small,
so that a whole cluster fits on one machine. Recovery times depend on both: to compare them with
those of a production cluster, set its values in `config` and `memory_mb`.

{GENERATED}
"""
TOPOLOGIES: Mapping[str, str] = {
    "flink": "flink-kafka-hdfs",
    "hdfs": "flink-kafka-hdfs",
    "kafka": "kafka-only",
    "spark": "spark-kafka-hdfs",
    "zookeeper": "flink-ha",
}
"""Engine -> the shipped topology that shows its settings. The engine `container` makes none."""
NOT_SHOWN = re.compile(
    r"addr|bind|\.host|\.port|clientPort|listener|dirs?$|directory$|voters|defaultFS|node\.id|roles$"
    r"|spark\.master|app\.name|process\.size|numberOfTaskSlots|execution\.target|deployMode",
    re.IGNORECASE,
)
"""Settings of a node's address or role, and those that a topology sets itself."""
FLINK, SPARK = "flink", "spark"
"""The engines that run jobs; their services have the same names on these topologies."""


def page() -> str:
    """The whole page."""
    sections = [
        *(_engine_section(name, load_topology(topology)) for name, topology in TOPOLOGIES.items()),
        _jobs_of_flink(load_topology(TOPOLOGIES[FLINK])),
        _jobs_of_spark(load_topology(TOPOLOGIES[SPARK])),
    ]
    return HEAD + "".join(f"\n{text}" for text in sections)


def _engine_section(name: str, topology: Topology) -> str:
    plans = _plans(name, topology)
    memory = ", ".join(f"{role} {plan.memory_mb} MiB" for role, plan in plans.items())
    values_of: dict[str, dict[str, None]] = {}
    for plan in plans.values():
        for path, text in plan.files.items():
            for key, value in _settings(path, text):
                values_of.setdefault(key, {})[value] = None
    rows = {key: " / ".join(values) for key, values in values_of.items()}
    release = topology.services[_service(name, topology)].version
    return (
        f"## Engine `{name}` on `{topology.name}`\n\nMemory of a container: {memory}.\n\n"
        + _table(rows, defaults(release) if name == FLINK and release else {})
    )


def _service(name: str, topology: Topology) -> str:
    service = topology.service_of(name)
    if service is None:
        raise LookupError(f"{topology.name} has no service of the engine {name}")
    return service


def _plans(name: str, topology: Topology) -> Mapping[str, NodePlan]:
    """The plan of the first node of each role."""
    service, plan_source = _service(name, topology), engine(name)
    nodes = [*topology.nodes(), *plan_source.extra_nodes(topology, service)]
    first = {n.role: n for n in reversed(nodes) if n.service == service}
    ports = PortAllocator(host=lambda node, port: port)
    return {role: plan_source.plan(topology, node, ports) for role, node in reversed(first.items())}


def _settings(path: str, text: str) -> Iterator[tuple[str, str]]:
    """The settings in a configuration file of an engine."""
    match PurePosixPath(path).suffix:
        case ".yaml":
            yield from yaml.safe_load(text).items()
        case ".xml":
            for element in ElementTree.fromstring(text).iter("property"):
                yield element.findtext("name", ""), element.findtext("value", "")
        case suffix:
            for line in text.splitlines():
                key, _, value = line.partition(" " if suffix == ".conf" else "=")
                yield key, value


def _table(rows: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The settings as a table, with the defaults if they are known."""
    head = ["setting", "value", *(["default of this release"] if known else [])]
    cells = [
        [f"`{key}`", f"`{value}`", *([_default(known, key)] if known else [])]
        for key, value in rows.items()
        if not NOT_SHOWN.search(key)
    ]
    lines = [head, ["---"] * len(head), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _default(known: Mapping[str, str], key: str) -> str:
    return f"`{known[key]}`" if known.get(key, "null") != "null" else ""


def _jobs_of_flink(topology: Topology) -> str:
    release = topology.services[FLINK].version or ""
    head = (
        "## Each job of Flink\n\nThe client sends these settings with the job that it submits.\n\n"
    )
    return head + _table(job_settings(topology, FLINK), defaults(release))


def _jobs_of_spark(topology: Topology) -> str:
    driver = next(node for node in topology.nodes() if node.role == "driver")
    text = program_file(topology, SPARK, driver, "NAME", 4, {})
    head = "## Each program of Spark\n\nWith a parallelism of 4.\n\n"
    return head + _table(dict(_settings("program.conf", text)), {})
