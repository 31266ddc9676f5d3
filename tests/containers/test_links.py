"""Links on real containers: connections pass through the proxy, which can slow them, and are
transparent to the peers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamquake.cluster.cluster import (
    Cluster,
    NodeDied,
    attach_cluster,
)
from streamquake.cluster.links.links import LinkPath
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.cluster.sandbox import has_lost_network
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.supervisor import Supervisor
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from streamquake.topologies.model import Topology
from tests.echo import echo_topology
from tests.pace import wait_until

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("echo_engine")]

ASK = r"""
use IO::Socket::INET; use Time::HiRes 'time';
my $c = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 7000, Timeout => 5) or die $!;
my $began = time; print $c "ping\n"; my $line = <$c>;
printf "%s %s %d", $line =~ /ping/ ? 'pong' : 'nothing', $c->peerhost, 1000 * (time - $began);
"""


def _send_ping(cluster: Cluster, server: Node) -> tuple[str, str, int]:
    """The answer, the peer address that the client sees, and the duration in milliseconds."""
    client = cluster.node("echo/client-1")
    argv = ["perl", "-e", ASK, server.spec.host]
    words = cluster.runtime.exec(client.container, argv).output.split()
    return words[0], words[1], int(words[2])


def _shortest_ms(cluster: Cluster, server: Node) -> int:
    """The shortest of several answer times: a busy machine delays some answers, a slow link delays
    all."""
    return min(_send_ping(cluster, server)[2] for _ in range(5))


def _await_counted(cluster: Cluster, path: LinkPath, more_than: int) -> None:
    """Wait for the proxy, which counts a connection shortly after it was closed."""

    def pending() -> str | None:
        passed = cluster.links.bytes_passed([path])
        return None if passed > more_than else f"{passed} bytes"

    wait_until(pending, what="bytes counted", limit_s=30, clock=cluster.clock)


def test_a_link_passes_transparently_through_its_proxy_and_can_be_slowed(
    deploy: Callable[[Topology], Cluster],
) -> None:
    cluster = deploy(echo_topology())
    proxy, (path, other) = cluster.links.proxy, cluster.links.of("line")
    server = cluster.node(path.target)
    assert proxy is not None
    before = cluster.links.bytes_passed([path])

    answer, address, _ = _send_ping(cluster, server)

    assert (answer, address) == ("pong", server.ip)
    _await_counted(cluster, path, before + 9)  # a line there, and back
    assert cluster.links.bytes_passed([other]) == 0
    assert _shortest_ms(cluster, server) < 400

    proxy.add_toxic(path.name, "late", "latency", "downstream", {"latency": 400, "jitter": 0})
    answer, address, slow_ms = _send_ping(cluster, server)

    assert (answer, address) == ("pong", server.ip)
    assert slow_ms >= 400
    assert _shortest_ms(cluster, cluster.node(other.target)) < 400

    cluster.links.remove_toxic(path, "late")
    cluster.links.remove_toxic(path, "late")
    assert proxy.toxics(path.name) == {}
    assert _shortest_ms(cluster, server) < 400


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("back", [False, True])
def test_a_node_that_lost_its_network_gets_network_and_links_again(
    deploy: Callable[[Topology], Cluster], tmp_path: Path, back: bool
) -> None:
    """With `back` another process has started the sandbox again, without rules."""
    cluster = deploy(echo_topology())
    client, path = cluster.node("echo/client-1"), cluster.links.of("line")[0]
    assert not has_lost_network(cluster, client, cluster.state(client))
    cluster.runtime.kill(client.sandbox)
    if back:
        cluster.runtime.start_again(client.sandbox)
    assert cluster.state(client).status == ContainerStatus.RUNNING
    assert has_lost_network(cluster, client, cluster.state(client))
    history = HistoryWriter(tmp_path / "history.jsonl")
    metrics = Metrics(tmp_path / "metrics.parquet")
    loop = EventLoop(history, metrics, cluster.clock, show=lambda: None)

    Supervisor(cluster, loop, lambda: ()).poll()

    before = cluster.links.bytes_passed([path])
    assert _send_ping(cluster, cluster.node(path.target))[0] == "pong"
    _await_counted(cluster, path, before + 9)
    loop.tick()
    assert [event.action for event in loop.history()] == [Action.NODE_REVIVED]


def test_links_are_set_up_again_when_a_node_restarts(
    deploy: Callable[[Topology], Cluster],
) -> None:
    cluster = deploy(echo_topology())
    client, path = cluster.node("echo/client-1"), cluster.links.of("line")[0]
    assert cluster.links.proxy is not None

    cluster.start_again(client)  # it runs already; this has no effect
    cluster.runtime.kill(client.container)
    cluster.start_again(client)
    before = cluster.links.bytes_passed([path])

    assert _send_ping(cluster, cluster.node(path.target))[0] == "pong"
    _await_counted(cluster, path, before)


def test_another_process_finds_the_cluster_by_its_labels(
    deploy: Callable[[Topology], Cluster],
) -> None:
    started = deploy(echo_topology())
    found = attach_cluster(
        run_id=started.run_id,
        topology=started.topology,
        runtime=DockerRuntime(),
        clock=SystemClock(),
    )

    assert list(found.nodes) == list(started.nodes)
    assert found.nodes == started.nodes
    assert found.links.proxy is not None
    assert found.links.proxy.pending() is None
    found.start_again(found.node("echo/client-1"))
    assert _send_ping(found, found.node("echo/server-2"))[0] == "pong"


def test_a_node_that_ends_at_start_is_reported_with_its_log_tail(
    deploy: Callable[[Topology], Cluster],
) -> None:
    def deploy_and_wait() -> None:
        cluster = deploy(echo_topology(env={"FAIL": "1"}))
        # On a busy machine the servers may be ready before the client has ended.
        wait_until(
            lambda: cluster.pending() or "every node runs",
            what="the end of the client",
            limit_s=30,
            clock=cluster.clock,
        )

    with pytest.raises(NodeDied, match=r"(?s)echo/client-1 ended with exit code 9.*disk is gone"):
        deploy_and_wait()
