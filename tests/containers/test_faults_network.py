"""Network faults for real, on containers that echo: each bites as it says, and only there."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.clock import SystemClock
from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.docker.runtime import DockerRuntime
from streamquake.cluster.engine import NodePlan, Ports, engines
from streamquake.cluster.labels import OWNER, owner_of_this_process
from streamquake.cluster.waiting import wait_until
from streamquake.faults.fault import faults
from streamquake.faults.intents import Intent, IntentLog
from streamquake.faults.strike import Struck, baselines_of, evidence_now, strike, undo
from streamquake.faults.target import parse_target, resolve
from streamquake.topologies.model import NodeSpec, Topology
from tests.echo import Echo

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
CHATTER = r"""
use IO::Socket::INET; $SIG{PIPE} = 'IGNORE'; $SIG{ALRM} = sub { die };
my $host = 'echo-server-4';
for (1 .. 3) { if (!fork) { $host = "echo-server-$_"; last } }
while (1) {
  eval {
    alarm 1;
    my $c = IO::Socket::INET->new(PeerAddr => $host, PeerPort => 7000) or die;
    while (1) { alarm 1; print $c "x" x 2000, "\n"; <$c> // die; select(undef, undef, undef, .02) }
  };
  select(undef, undef, undef, .1);
}
"""


class Chat(Echo):
    """Servers that echo to many at once, however their clients left them."""

    name = "test-chat"

    def plan(self, topology: Topology, node: NodeSpec, ports: Ports) -> NodePlan:
        plan = super().plan(topology, node, ports)
        serves = ("perl", "-e", SERVE)
        return replace(plan, command=serves) if node.role == "server" else plan


TOPOLOGY = Topology.model_validate(
    {
        "name": "echoes",
        "services": {"echo": {"engine": Chat.name, "nodes": {"server": 4, "client": 1}}},
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


class Proof:
    """Strikes faults on the echo cluster as the harness does."""

    def __init__(self, cluster: Cluster, log: IntentLog) -> None:
        self.cluster = cluster
        self.log = log

    def strike(self, name: str, target: str, **params: Any) -> tuple[Intent, Struck]:
        fault = faults[name](**params)
        chosen = resolve(parse_target(target), self.cluster, random.Random(0))
        intent = self.log.intend(
            step=0, fault=fault, target=target, names=[one.name for one in chosen],
            baselines=baselines_of(fault, self.cluster, chosen),
        )  # fmt: skip
        return intent, strike(intent, self.cluster, chosen, limit_s=10)

    def heal(self, intent: Intent) -> None:
        for _ in range(2):
            healed = undo(intent, self.cluster, self.log, limit_s=10)
            assert healed.done, healed.reason

    def bites(self, name: str, target: str, **params: Any) -> Mapping[str, Any]:
        """Strike, see it, heal, see it gone; returns the evidence, by target."""
        intent, struck = self.strike(name, target, **params)
        try:
            assert struck.done, struck.reason
        finally:
            self.heal(intent)
        return struck.evidence


@pytest.fixture(scope="module")
def cluster(docker_runtime: DockerRuntime) -> Iterator[Cluster]:
    """Four servers and a client that chats with each over its link."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engines._members, Chat.name, Chat)
        run_id = f"test-{uuid.uuid4().hex[:10]}"
        made = Cluster(
            run_id=run_id, topology=TOPOLOGY, runtime=docker_runtime, clock=SystemClock()
        )
        try:
            start_cluster(made, tags={OWNER: owner_of_this_process()}, limit_s=60, say=print)
            client = made.node("echo/client-1").container
            quiet = 'nohup perl -e "$1" > /dev/null 2>&1 &'
            made.runtime.exec(client, ["sh", "-c", quiet, "sh", CHATTER])
            yield made
        finally:
            assert remove_cluster(docker_runtime, run_id) == []


def _chatting(cluster: Cluster) -> None:
    """Wait for a connection that carries something on every path of the line.

    What the test before cut is connected anew only after it was healed, and a fault that refuses
    connections would keep it from that.
    """
    paths = cluster.links.of("line")
    last: dict[str, int] = {}

    def pending() -> str | None:
        now = {path.name: cluster.links.bytes_passed([path]) for path in paths}
        quiet = [
            name
            for name, bytes_passed in now.items()
            if bytes_passed <= last.get(name, bytes_passed)
        ]
        last.update(now)
        return f"no bytes on {quiet}" if quiet else None

    wait_until(pending, what="chatter", limit_s=20, clock=cluster.clock)


@pytest.fixture
def proof(cluster: Cluster, tmp_path: Path) -> Proof:
    _chatting(cluster)
    return Proof(cluster, IntentLog(tmp_path / "intents.jsonl"))


@pytest.mark.parametrize(("how", "answer"), [("silent", "timed out"), ("reset", "refused")])
def test_a_partition_cuts_both_ways_links_included(proof: Proof, how: str, answer: str) -> None:
    seen = proof.bites("partition", "between echo/client-1 and echo/server-1", how=how)

    (found,) = (seen[name] for name in seen if "<->" in name)
    assert set(found["answers"].values()) == {answer}
    assert {"echo/client-1 -> echo/server-1:7000", "echo/server-1 -> echo/client-1:7001"} <= set(
        found["answers"]
    )
    assert set(found["before"]["answers"].values()) <= {"connected", "refused"}


def test_a_one_way_partition_lets_the_other_way_pass(proof: Proof) -> None:
    seen = proof.bites("partition", "from echo/server-1 to echo/server-2")

    found = seen["echo/server-1->echo/server-2"]
    assert found["answers"] == SILENT_ONE_WAY
    assert found["packets_let_pass"] > 0


def test_a_one_way_reset_tells_only_who_sends_that_way(proof: Proof) -> None:
    seen = proof.bites("partition", "from echo/server-1 to echo/server-2", how="reset")

    answers = seen["echo/server-1->echo/server-2"]["answers"]
    assert answers["echo/server-1 -> echo/server-2:7000"] == "refused"
    assert answers["echo/server-2 -> echo/server-1:7000"] == "timed out"


def test_a_partition_leaves_everybody_else_alone(proof: Proof) -> None:
    intent, struck = proof.strike("partition", "between echo/client-1 and echo/server-1")
    try:
        assert struck.done, struck.reason
        for other in ("echo/server-2", "echo/server-3"):
            perl = ["perl", "-MIO::Socket::INET", "-e", "IO::Socket::INET->new($ARGV[0]) or die $!"]
            at = f"{proof.cluster.node(other).spec.host}:7000"
            client = proof.cluster.node("echo/client-1").container
            assert proof.cluster.runtime.exec(client, [*perl, at]).exit_code == 0
    finally:
        proof.heal(intent)


@pytest.mark.parametrize("how", ["silent", "reset"])
def test_an_isolated_node_reaches_nobody(proof: Proof, how: str) -> None:
    seen = proof.bites("isolate", "echo/server-2", how=how)

    answers = seen["echo/server-2"]["answers"]
    assert set(answers.values()) == {"timed out" if how == "silent" else "refused"}
    assert len({name.split(" -> ")[0] for name in answers}) == 5


def test_a_ring_leaves_everybody_two_neighbours(proof: Proof) -> None:
    seen = proof.bites("ring_partition", "all of echo/server")

    first = seen["echo/server-1"]["answers"]
    assert first["echo/server-1 -> echo/server-3:7000"] == "timed out"
    assert first["echo/server-1 -> echo/server-2:7000"] == "connected"
    assert first["echo/server-1 -> echo/server-4:7000"] == "connected"


def test_a_bridge_reaches_both_halves(proof: Proof) -> None:
    seen = proof.bites("bridge_partition", "all of echo/server", how="reset")

    assert set(seen["echo/server-3"]["answers"].values()) == {"connected"}
    assert seen["echo/server-1"]["answers"]["echo/server-1 -> echo/server-4:7000"] == "refused"


@pytest.mark.parametrize("stream", ["both", "upstream", "downstream"])
@pytest.mark.parametrize("how", ["silent", "reset"])
def test_a_cut_link_is_cut_as_asked(proof: Proof, how: str, stream: str) -> None:
    seen = proof.bites("partition_link", "link line", how=how, stream=stream)

    refused = how == "reset" and stream != "downstream"
    assert set(seen["line"]["answers"].values()) == {"refused" if refused else "timed out"}


def test_a_refused_link_keeps_its_open_connections(proof: Proof) -> None:
    intent, struck = proof.strike("refuse_link", "link line")
    try:
        assert struck.done, struck.reason
        paths = proof.cluster.links.of("line")
        before = proof.cluster.links.bytes_passed(paths)
        wait_until(
            lambda: None if proof.cluster.links.bytes_passed(paths) > before else "no bytes",
            what="open connections go on", limit_s=30, clock=proof.cluster.clock,
        )  # fmt: skip
    finally:
        proof.heal(intent)


@pytest.mark.parametrize(("how", "lookup"), [("silent", "timed out"), ("reset", "failed at once")])
def test_names_cannot_be_looked_up(proof: Proof, how: str, lookup: str) -> None:
    seen = proof.bites("dns_failure", "echo/server-4", how=how)

    assert seen["echo/server-4"]["lookup"] == lookup
    assert seen["echo/server-4"]["before"] == {"lookup": "found"}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("slow_link", {"latency_ms": 100, "stream": "downstream"}),
        ("stall_link", {}),
        ("slice_link", {"average_bytes": 100, "variation_bytes": 20}),
        ("reset_link", {}),
    ],
)
def test_a_toxic_is_seen_in_what_passes(proof: Proof, name: str, params: Mapping[str, Any]) -> None:
    seen = proof.bites(name, "link line", **params)

    assert len(seen["line"]["toxics"]) == 4


def test_a_node_started_again_is_free_of_rules(proof: Proof) -> None:
    intent, struck = proof.strike("isolate", "echo/server-4")
    try:
        assert struck.done, struck.reason
        node = proof.cluster.node("echo/server-4")
        proof.cluster.runtime.kill(node.container)
        assert evidence_now(intent, proof.cluster)["echo/server-4"].gone
        proof.cluster.start_again(node)
    finally:
        proof.heal(intent)
