"""The language of topologies: the keys of a document, and what each engine offers."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.cluster.engines.engine import KnowsDuties, engine, engines
from streamquake.harness.reference.markdown import GENERATED, section
from streamquake.topologies.model import HttpPage, Link, Model, NodeGroup, Ready, Service, Topology

HEAD = f"""# Topologies

A topology is a YAML file: services, the nodes of each by role, and named links between them. A node
is called `SERVICE/ROLE-NUMBER`, such as `flink/taskmanager-2`.

    name: mine
    services:
      kafka: {{engine: kafka, nodes: {{broker: 1}}}}
      hdfs:  {{engine: hdfs, nodes: {{namenode: 1, datanode: 1}}}}
      flink:
        engine: flink
        version: "2.2"
        nodes: {{jobmanager: 1, taskmanager: {{count: 3, slots: 2}}}}
        config: {{execution.checkpointing.interval: 2s}}
    links:
      sink: {{from: flink/taskmanager, to: kafka/broker, port: output}}

`base: NAME` takes every key from another topology that the document does not give itself.
Mappings are merged key by key; a list or a value replaces that of the base, and `null` takes an
optional key away. Unknown keys are rejected, with the nearest known one.

{GENERATED}
"""
PARTS: Mapping[str, type[Model]] = {
    "A topology": Topology,
    "A service": Service,
    "When a container is ready": Ready,
    "A page of a container": HttpPage,
    "A group of nodes": NodeGroup,
    "A link": Link,
}


def page() -> str:
    """The whole page."""
    parts = [section(title, model) for title, model in PARTS.items()]
    return HEAD + "".join(f"\n{part}" for part in [*parts, *map(_engine_section, engines)])


def _engine_section(name: str) -> str:
    described = engine(name)
    lines = [f"## Engine `{name}`", "", engines[name].__doc__ or "", ""]
    lines += [f"- role `{role}`: {text}" for role, text in described.roles().items()]
    lines += [f"- port `{port}`: {number}" for port, number in described.ports().items()]
    duties = described.duties() if isinstance(described, KnowsDuties) else ()
    lines += [f"- target `the {duty.usage}`" for duty in duties]
    return "\n".join(lines) + "\n"
