"""A service of the engine container on real containers: it becomes ready, is reached through a
link, and is ready again after a kill."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamquake.cluster.cluster import Cluster, NodeDied
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.topologies.model import Topology
from tests.echo import ASK_FIRST_SERVER
from tests.pace import wait_until

pytestmark = pytest.mark.container

SERVE = r"""
use IO::Socket::INET; $SIG{CHLD} = 'IGNORE';
open(my $file, '>', '/data/ready') or die $!; close $file;
my $s = IO::Socket::INET->new(LocalPort => 7000, Listen => 9, ReuseAddr => 1) or die $!;
while (my $c = $s->accept) { while (my $line = <$c>) { print $c "$ENV{ANSWER} $line" } }
"""


def topology() -> Topology:
    """A server with a folder of its own, and a program that asks it over a link."""
    image = recipe("toolbox").tag
    echo = {
        "engine": "container",
        "image": image,
        "command": ("perl", "-e", SERVE),
        "ports": {"line": 7000},
        "volumes": ("/data",),
        "ready": {"command": ("test", "-e", "/data/ready")},
        "nodes": {"server": {"env": {"ANSWER": "pong"}}},
    }
    asks = {"engine": "container", "image": image, "command": ("sleep", "600")}
    return Topology.model_validate(
        {
            "name": "container",
            "services": {"echo": echo, "app": {**asks, "nodes": {"server": 1}}},
            "links": {"line": {"from": "app/server", "to": "echo/server", "port": "line"}},
        }
    )


def test_a_node_with_a_long_name_is_found_by_its_address(
    deploy: Callable[[Topology], Cluster],
) -> None:
    """The engine's DNS does not answer with a label of more than 63 bytes."""
    service = "a-service-with-a-name-of-more-than-forty-bytes"
    command = ("sleep", "600")
    asks = {"engine": "container", "image": recipe("toolbox").tag, "command": command}
    cluster = deploy(
        Topology.model_validate(
            {"name": "long", "services": {service: {**asks, "nodes": {"server": 2}}}}
        )
    )
    client, other = cluster.of_service(service)

    found = cluster.runtime.exec(client.container, ["getent", "hosts", other.ip])

    assert found.exit_code == 0
    assert other.ip in found.output


def answer(cluster: Cluster) -> str:
    client = cluster.node("app/server-1")
    return cluster.runtime.exec(client.container, ["perl", "-e", ASK_FIRST_SERVER]).output


def test_any_image_is_deployed_reached_through_a_link_and_ready_again_after_a_kill(
    deploy: Callable[[Topology], Cluster],
) -> None:
    cluster = deploy(topology())
    server = cluster.node("echo/server-1")
    (path,) = cluster.links.of("line")
    assert cluster.pending() is None

    before = cluster.links.bytes_passed([path])
    assert answer(cluster) == "pong ping\n"

    def not_counted() -> str | None:
        passed = cluster.links.bytes_passed([path])
        return None if passed > before else f"{passed} bytes"

    wait_until(not_counted, what="bytes counted", limit_s=30, clock=cluster.clock)

    cluster.runtime.kill(server.container)
    wait_until(
        lambda: None if cluster.state(server).status == ContainerStatus.EXITED else "it runs",
        what="the end of the process",
        limit_s=30,
        clock=cluster.clock,
    )
    with pytest.raises(NodeDied, match="echo/server-1"):
        cluster.pending()
    assert "pong" not in answer(cluster)

    cluster.start_again(server)
    wait_until(cluster.pending, what="ready again", limit_s=60, clock=cluster.clock)
    assert answer(cluster) == "pong ping\n"


def test_a_condition_that_does_not_hold_is_told(deploy: Callable[[Topology], Cluster]) -> None:
    cluster = deploy(topology())
    server = cluster.node("echo/server-1")

    cluster.runtime.exec(server.container, ["rm", "/data/ready"])

    assert cluster.pending() == ("echo: echo/server-1: `test` exits with 1: no output")
