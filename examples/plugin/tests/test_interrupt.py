"""The fault, on the fake runtime that comes with Streamquake."""

from __future__ import annotations

import pytest
from streamquake_example.interrupt import Interrupt

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec
from streamquake.cluster.topology_validation import checked_topology
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.topologies.loader import find_topology


@pytest.fixture
def cluster() -> Cluster:
    """A broker on the fake runtime."""
    topology, _ = checked_topology(find_topology("kafka-only"))
    assert topology is not None
    clock = FakeClock()
    runtime = FakeRuntime(clock)
    cluster = Cluster(run_id="test", topology=topology, runtime=runtime, clock=clock)
    (spec,) = topology.nodes()
    container = runtime.start(ContainerSpec(name="broker", image="none"))
    cluster.nodes[spec.name] = Node(
        spec=spec, container=container, sandbox=container, ip="10.0.0.2", host_ports={}
    )
    return cluster


def test_an_interrupted_node_has_ended(cluster: Cluster) -> None:
    fault, node = Interrupt(), cluster.nodes["kafka/broker-1"]
    before = fault.baseline(cluster, node)
    assert fault.evidence(cluster, node, before).healed

    fault.inject(cluster, node)
    seen = fault.evidence(cluster, node, before)

    assert (seen.in_effect, seen.observations["exit_code"]) == (True, 130)
    assert list(fault.contradicted_effect(seen.observations, before)) == []


def test_a_program_that_ignores_the_signal_is_not_disturbed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, node = Interrupt(within_s=1), cluster.nodes["kafka/broker-1"]
    before = fault.baseline(cluster, node)
    monkeypatch.setattr(cluster.runtime, "kill", lambda container, signal: nothing_done(cluster))

    fault.inject(cluster, node)

    assert not fault.evidence(cluster, node, before).in_effect


def test_a_healed_node_runs_again_also_when_healed_twice(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, node = Interrupt(), cluster.nodes["kafka/broker-1"]
    before = fault.baseline(cluster, node)
    fault.inject(cluster, node)
    monkeypatch.setattr(
        cluster, "start_again", lambda each: cluster.runtime.start_again(each.container)
    )

    for _ in range(2):
        fault.heal(cluster, node, before)
        assert fault.evidence(cluster, node, before).healed
