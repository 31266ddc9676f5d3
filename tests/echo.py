"""A small service for tests of clusters: servers that echo lines, and clients that can connect to
them.

It is an engine, but is registered only in tests with the fixture `echo_engine`. Tests of all
engines do not include it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import NodePlan, PortAllocator
from streamquake.cluster.images.recipes import ImageRecipe, recipe
from streamquake.topologies.model import NodeSpec, Topology

PORT = 7000
SERVE = r"""
use IO::Socket::INET; $SIG{CHLD} = 'IGNORE';
my $s = IO::Socket::INET->new(LocalPort => 7000, Listen => 9, ReuseAddr => 1) or die $!;
while (my $c = $s->accept) { while (my $line = <$c>) { print $c $line } }
"""
ASK_FIRST_SERVER = r"""
use IO::Socket::INET;
my $c = IO::Socket::INET->new(PeerAddr => 'echo-server-1', PeerPort => 7000, Timeout => 5)
    or die $!;
print $c "ping\n"; print scalar <$c>;
"""
"""Sends a line to the first server of a service `echo`, and prints its answer."""


class Echo:
    """A service that echoes lines. Its client nodes do nothing until a test runs a command in
    them."""

    name: ClassVar[str] = "test-echo"

    def roles(self) -> Mapping[str, str]:
        return {"server": "echoes", "client": "asks"}

    def ports(self) -> Mapping[str, int]:
        return {"echo": PORT}

    def problems(self, topology: Topology, service: str) -> list[tuple[tuple[str, ...], str]]:
        return []

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return (recipe("toolbox"),)

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        serves = ("perl", "-e", SERVE) if node.role == "server" else ("sleep", "600")
        fails = ("sh", "-c", "echo the disk is gone; exit 9")
        return NodePlan(
            image=recipe("toolbox").tag,
            command=fails if "FAIL" in node.group.env else serves,
            files={"/etc/echo/reached-at": f"127.0.0.1:{ports.host(node, PORT)}\n"},
            publish=(PORT,),
        )

    def pending(self, cluster: Cluster, service: str) -> str | None:
        listening = [
            ":7000" in cluster.runtime.in_network_namespace(node.container, ["ss", "-ltn"]).output
            for node in cluster.of_role(f"{service}/server")
        ]
        return None if all(listening) else "a server does not listen yet"


def echo_topology(**client: object) -> Topology:
    """Two servers and one client, or clients with the given settings, and a link between them."""
    nodes = {"server": 2, "client": client or 1}
    return Topology.model_validate(
        {
            "name": "echo",
            "services": {"echo": {"engine": "test-echo", "nodes": nodes}},
            "links": {"line": {"from": "echo/client", "to": "echo/server", "port": "echo"}},
        }
    )
