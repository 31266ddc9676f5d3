"""A node that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamquake.topologies.model import NodeSpec


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node that runs: its spec, its containers and where it can be reached."""

    spec: NodeSpec
    container: str
    """The container of its process."""
    sandbox: str
    """The container that holds its network namespace, with address, name, ports and rules."""
    ip: str
    host_ports: Mapping[int, int]

    @property
    def name(self) -> str:
        return self.spec.name
