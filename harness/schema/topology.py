"""The topology as a document writes it: each engine with its roles, and the name of a base."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from streamquake.cluster.engines.engine import engine, engines
from streamquake.harness.schema.composed_types import either, mapping_of, one_of
from streamquake.harness.schema.named_parts import shipped_or_path
from streamquake.harness.schema.written_model import FieldDefinition, written_model
from streamquake.topologies.base_documents import KEY
from streamquake.topologies.docstrings import summary
from streamquake.topologies.model import Model, Name, NodeGroupOrCount, Service, Topology
from streamquake.topologies.named_files import SHIPPED


def topology_model() -> type[Topology]:
    """The model of a topology's document."""
    services = either(*(_service_model(name) for name in engines))
    fields = {
        KEY: base_field("topology", shipped_or_path("topology", SHIPPED)),
        "services": (mapping_of(Name, services), ...),
    }
    return written_model("Topology", Topology, fields)


def base_field(kind: str, names: Any) -> FieldDefinition:
    """The key `base` of a document that builds on another one."""
    text = f"The {kind} that this one builds on, by name or file; only changes are written here."
    return names, Field("", description=text)


def _service_model(name: str) -> type[Service]:
    """A service of one engine, with the roles of this engine."""
    title = name.capitalize()
    roles = {
        role: (NodeGroupOrCount, Field(None, description=text))
        for role, text in engine(name).roles().items()
    }
    nodes = written_model(f"{title}Nodes", Model, roles, description="Role -> its nodes.")
    return written_model(
        f"{title}Service",
        Service,
        {"engine": (one_of([name]), ...), "nodes": (nodes, nodes())},
        description=summary(engines[name]),
    )
