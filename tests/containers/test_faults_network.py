"""Network faults on real containers with an echo service: each takes effect as documented, and on
no other connection."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engines
from streamquake.cluster.links.traffic import ConnectionCounters, traffic_of
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.labels import OWNER, owner_of_this_process
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import IntentLog
from streamquake.reports.record.event import PROBE_ALONE, SYSTEM
from streamquake.topologies.model import NodeSpec, Topology
from tests.echo import Echo
from tests.injecting import FaultInjector, build_fault
from tests.pace import at_pace, wait_until
from tests.tiers import others_nightly

pytestmark = pytest.mark.container

SERVE = r"""
use IO::Socket::INET; $SIG{CHLD} = 'IGNORE';
my $s = IO::Socket::INET->new(LocalPort => 7000, Listen => 64, ReuseAddr => 1) or die $!;
while (1) {
  my $c = $s->accept or next;
  next if fork;
  print $c $_ while <$c>;
  exit;
}
"""
CLIENT = r"""
use IO::Socket::INET; $SIG{PIPE} = 'IGNORE'; $SIG{ALRM} = sub { die };
my $host = 'echo-server-4';
for (1 .. 3) { if (!fork) { $host = "echo-server-$_"; last } }
while (1) {
  eval {
    alarm 1;
    my $c = IO::Socket::INET->new(PeerAddr => $host, PeerPort => 7000) or die;
    while (1) { alarm 3; print $c "x" x 2000, "\n"; <$c> // die; select(undef, undef, undef, .02) }
  };
  alarm 0;
  select(undef, undef, undef, .1);
}
"""


class ConcurrentEcho(Echo):
    """Echo servers with many clients at a time, which may close their connections in any way."""

    name = "test-chat"

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        plan = super().plan(topology, node, ports)
        serves = ("perl", "-e", SERVE)
        return replace(plan, command=serves) if node.role == "server" else plan


TOPOLOGY = Topology.model_validate(
    {
        "name": "echoes",
        "services": {"echo": {"engine": ConcurrentEcho.name, "nodes": {"server": 4, "client": 1}}},
        "links": {
            "line": {"from": "echo/client", "to": "echo/server", "port": "echo"},
            "back": {"from": "echo/server", "to": "echo/client", "port": 7001},
        },
    }
)
SILENT_ONE_WAY = {
    "echo/server-1 -> echo/server-2:7000": "timed out",
    "echo/server-2 -> echo/server-1:7000": "timed out",
}


@pytest.fixture(scope="module")
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    """Four servers and a client that sends to each of them continuously, over its link."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engines._members, ConcurrentEcho.name, ConcurrentEcho)
        run_id = f"test-{uuid.uuid4().hex[:10]}"
        new_cluster = Cluster(
            run_id=run_id, topology=TOPOLOGY, runtime=docker_runtime, clock=SystemClock()
        )
        try:
            start_cluster(
                new_cluster,
                tags={OWNER: owner_of_this_process()},
                limit_s=at_pace(60),
                show_message=print,
            )
            client = new_cluster.node("echo/client-1").container
            quiet = 'nohup perl -e "$1" > /dev/null 2>&1 &'
            new_cluster.runtime.exec(client, ["sh", "-c", quiet, "sh", CLIENT])
            yield new_cluster
        finally:
            assert remove_cluster(docker_runtime, run_id) == []


def _carried_data(before: ConnectionCounters | None, now: ConnectionCounters) -> bool:
    """Whether a connection carried data in both directions between two samples."""
    return (
        before is not None and now.received > before.received and now.delivered > before.delivered
    )


def _await_traffic(cluster: Cluster) -> None:
    """Wait until every path of the link has a connection that carries data.

    Connections that the previous test cut are opened again only after its heal. A fault that
    refuses connections would prevent that.
    """
    paths = cluster.links.of("line")
    last = {path.name: traffic_of(cluster.links, [path]).sources for path in paths}

    def pending() -> str | None:
        silent = []
        for path in paths:
            now = traffic_of(cluster.links, [path]).sources
            # Both counters must be of one connection: the proxy's totals may be of several.
            if not any(
                _carried_data(last[path.name].get(peer), seen) for peer, seen in now.items()
            ):
                silent.append(path.name)
            last[path.name] = now
        return f"no traffic on {silent}" if silent else None

    wait_until(pending, what="traffic", limit_s=60, clock=cluster.clock)


@pytest.fixture
def injector(cluster: Cluster, tmp_path: Path) -> FaultInjector:
    _await_traffic(cluster)
    return FaultInjector(cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=at_pace(60))


@pytest.mark.parametrize(("how", "answer"), [("silent", "timed out"), ("reset", "refused")])
def test_a_partition_cuts_both_directions_and_the_links(
    injector: FaultInjector, how: str, answer: str
) -> None:
    seen = injector.took_effect(
        build_fault("partition", how=how), "between echo/client-1 and echo/server-1"
    )

    (found,) = (seen[name] for name in seen if "<->" in name)
    assert set(found["answers"].values()) == {answer}
    assert {"echo/client-1 -> echo/server-1:7000", "echo/server-1 -> echo/client-1:7001"} <= set(
        found["answers"]
    )
    assert set(found["before"]["answers"].values()) <= {"connected", "refused"}


@pytest.mark.nightly
def test_a_one_way_partition_passes_the_other_direction(injector: FaultInjector) -> None:
    seen = injector.took_effect(build_fault("partition"), "from echo/server-1 to echo/server-2")

    found = seen["echo/server-1->echo/server-2"]
    assert found["answers"] == SILENT_ONE_WAY
    assert found["packets_let_pass"] > 0
    assert found["disturbed"] == PROBE_ALONE, "the servers do not send to each other"


def test_evidence_distinguishes_traffic_of_the_system_from_probes(injector: FaultInjector) -> None:
    with injector.in_effect(build_fault("partition_link"), "link line") as (intent, _):

        def pending() -> str | None:
            seen = evidence_now(intent, injector.cluster)["line"].observations
            return None if seen["disturbed"] == SYSTEM else f"evidence: {seen}"

        wait_until(pending, what="traffic stopped", limit_s=60, clock=injector.cluster.clock)


@pytest.mark.nightly
def test_a_one_way_reset_affects_only_senders_in_that_direction(injector: FaultInjector) -> None:
    seen = injector.took_effect(
        build_fault("partition", how="reset"), "from echo/server-1 to echo/server-2"
    )

    answers = seen["echo/server-1->echo/server-2"]["answers"]
    assert answers["echo/server-1 -> echo/server-2:7000"] == "refused"
    assert answers["echo/server-2 -> echo/server-1:7000"] == "timed out"


@pytest.mark.nightly
def test_a_partition_does_not_affect_other_nodes(injector: FaultInjector) -> None:
    with injector.in_effect(build_fault("partition"), "between echo/client-1 and echo/server-1"):
        for other in ("echo/server-2", "echo/server-3"):
            perl = ["perl", "-MIO::Socket::INET", "-e", "IO::Socket::INET->new($ARGV[0]) or die $!"]
            at = f"{injector.cluster.node(other).spec.host}:7000"
            client = injector.cluster.node("echo/client-1").container
            assert injector.cluster.runtime.exec(client, [*perl, at]).exit_code == 0


@pytest.mark.nightly
@pytest.mark.parametrize("how", others_nightly(["silent", "reset"], ["silent"]))
def test_an_isolated_node_reaches_no_other_node(injector: FaultInjector, how: str) -> None:
    seen = injector.took_effect(build_fault("isolate", how=how), "echo/server-2")

    answers = seen["echo/server-2"]["answers"]
    assert set(answers.values()) == {"timed out" if how == "silent" else "refused"}
    assert len({name.split(" -> ")[0] for name in answers}) == 5


@pytest.mark.nightly
def test_a_ring_leaves_every_node_two_neighbours(injector: FaultInjector) -> None:
    seen = injector.took_effect(build_fault("ring_partition"), "all of echo/server")

    first = seen["echo/server-1"]["answers"]
    assert first["echo/server-1 -> echo/server-3:7000"] == "timed out"
    assert first["echo/server-1 -> echo/server-2:7000"] == "connected"
    assert first["echo/server-1 -> echo/server-4:7000"] == "connected"


@pytest.mark.nightly
def test_a_bridge_reaches_both_halves(injector: FaultInjector) -> None:
    seen = injector.took_effect(build_fault("bridge_partition", how="reset"), "all of echo/server")

    assert set(seen["echo/server-3"]["answers"].values()) == {"connected"}
    assert seen["echo/server-1"]["answers"]["echo/server-1 -> echo/server-4:7000"] == "refused"


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("stream", others_nightly(["both", "upstream", "downstream"], ["both"]))
@pytest.mark.parametrize("how", ["silent", "reset"])
def test_a_partitioned_link_is_stopped_in_the_given_direction(
    injector: FaultInjector, how: str, stream: str
) -> None:
    seen = injector.took_effect(build_fault("partition_link", how=how, stream=stream), "link line")

    rejected = how == "reset" and stream != "downstream"
    assert set(seen["line"]["answers"].values()) == {"refused" if rejected else "timed out"}


@pytest.mark.nightly
def test_a_refused_link_keeps_its_open_connections(injector: FaultInjector) -> None:
    with injector.in_effect(build_fault("refuse_link"), "link line"):
        paths = injector.cluster.links.of("line")
        before = injector.cluster.links.bytes_passed(paths)
        wait_until(
            lambda: None if injector.cluster.links.bytes_passed(paths) > before else "no bytes",
            what="traffic on open connections",
            limit_s=30,
            clock=injector.cluster.clock,
        )


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(("how", "lookup"), [("silent", "timed out"), ("reset", "failed at once")])
def test_a_dns_failure_makes_lookups_fail(injector: FaultInjector, how: str, lookup: str) -> None:
    seen = injector.took_effect(build_fault("dns_failure", how=how), "echo/server-4")

    assert seen["echo/server-4"]["lookup"] == lookup
    assert seen["echo/server-4"]["before"] == {"lookup": "found"}


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("slow_link", {"latency_ms": 100, "stream": "downstream"}),
        ("stall_link", {}),
        ("slice_link", {"average_bytes": 100, "variation_bytes": 20}),
        ("reset_link", {}),
    ],
)
def test_a_toxic_changes_the_passing_traffic(
    injector: FaultInjector, name: str, params: Mapping[str, Any]
) -> None:
    seen = injector.took_effect(build_fault(name, **params), "link line")

    assert len(seen["line"]["toxics"]) == 4


def test_a_restarted_node_keeps_its_address_and_rules(injector: FaultInjector) -> None:
    with injector.in_effect(build_fault("isolate"), "echo/server-4") as (intent, _):
        node = injector.cluster.node("echo/server-4")
        injector.cluster.runtime.kill(node.container)
        injector.cluster.start_again(node)
        assert evidence_now(intent, injector.cluster)["echo/server-4"].in_effect
