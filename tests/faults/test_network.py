"""Network faults on the fake network: parameters, incomplete rules, and traffic that must pass."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec, ExecResult
from streamquake.faults.catalogue.dns_failure import DnsFailure
from streamquake.faults.catalogue.partition import Partition
from streamquake.faults.catalogue.power_off import PowerOff
from streamquake.faults.catalogue.refuse_link import RefuseLink
from streamquake.faults.catalogue.ring_partition import RingPartition
from streamquake.faults.catalogue.slice_link import SliceLink
from streamquake.faults.catalogue.stall_link import StallLink
from streamquake.faults.fault import Fault
from streamquake.faults.injection.injection import InjectionResult
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.mechanisms.netfilter import INSPECT, PROBED, chain_name, remove_chain
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.reports.record.event import PROBE_ALONE, SYSTEM
from tests.fakes import WIDE, FakeToxiproxy, fake_cluster, use_proxy
from tests.fakes.worlds import network
from tests.injecting import FaultInjector

PAIR = "between flink/taskmanager-1 and kafka/broker-1"
ONE_WAY = "from flink/taskmanager-1 to kafka/broker-1"


def _target(cluster: Cluster, text: str) -> Any:
    """The target that a text names."""
    return resolve(parse_target(text), cluster, random.Random(0))[0]


def _injection(fault: Fault, text: str, cluster: Cluster, folder: Path) -> InjectionResult:
    _, injected = FaultInjector(
        cluster, IntentLog(folder / "intents.jsonl"), limit_s=1
    ).inject_fault(fault, text)
    return injected


@pytest.mark.parametrize(
    ("how", "forward", "backward"),
    [("silent", "timed out", "timed out"), ("reset", "refused", "timed out")],
)
def test_a_one_way_partition_stops_one_direction_only(
    tmp_path: Path, how: str, forward: str, backward: str
) -> None:
    injected = _injection(
        Partition.model_validate({"how": how}), ONE_WAY, fake_cluster(WIDE), tmp_path
    )

    assert injected.done, injected.reason
    evidence = injected.evidence["flink/taskmanager-1->kafka/broker-1"]
    outcomes = {name.split(" -> ")[0]: answer for name, answer in evidence["answers"].items()}
    assert outcomes == {"flink/taskmanager-1": forward, "kafka/broker-1": backward}
    assert evidence["packets_let_pass"] > 0


def test_a_partition_also_stops_the_links_of_the_pair(tmp_path: Path) -> None:
    injected = _injection(Partition(), PAIR, fake_cluster(WIDE), tmp_path)

    evidence = injected.evidence["flink/taskmanager-1<->kafka/broker-1"]
    from_flink = [name for name in evidence["answers"] if name.startswith("flink")]
    assert len(from_flink) == 3  # direct, source and sink
    assert set(evidence["answers"].values()) == {"timed out"}


@pytest.mark.parametrize(("busy", "whose"), [(True, SYSTEM), (False, PROBE_ALONE)])
@pytest.mark.parametrize("how", ["silent", "reset"])
def test_a_partition_records_whose_packets_it_stopped(
    how: str, busy: bool, whose: str, tmp_path: Path
) -> None:
    cluster = fake_cluster(WIDE)
    network.install(cluster).busy = busy

    injected = _injection(Partition.model_validate({"how": how}), PAIR, cluster, tmp_path)

    evidence = injected.evidence["flink/taskmanager-1<->kafka/broker-1"]
    assert evidence["disturbed"] == whose
    assert 0 < evidence["probes_stopped"] <= evidence["packets_stopped"]
    assert (evidence["probes_stopped"] < evidence["packets_stopped"]) == busy


@pytest.mark.parametrize(("looks_up", "whose"), [(True, SYSTEM), (False, PROBE_ALONE)])
def test_lookups_of_the_probe_are_distinguished(looks_up: bool, whose: str) -> None:
    cluster = fake_cluster(WIDE)
    world, fault, target = (
        network.install(cluster),
        DnsFailure(),
        _target(cluster, "hdfs/datanode-2"),
    )
    baseline = fault.baseline(cluster, target)
    fault.inject(cluster, target)
    assert fault.evidence(cluster, target, baseline).observations["disturbed"] == PROBE_ALONE
    assert isinstance(cluster.runtime, FakeRuntime)
    if looks_up:
        spec = cluster.runtime.containers[cluster.node("hdfs/datanode-2").container].spec
        world.lookup(spec, ["getent"])

    again = fault.evidence(cluster, target, baseline)

    assert again.in_effect
    assert again.observations["disturbed"] == whose


def test_a_partition_with_half_its_rules_is_neither_in_effect_nor_healed() -> None:
    cluster, fault = fake_cluster(WIDE), Partition(how="reset")
    pair = _target(cluster, PAIR)
    baseline = fault.baseline(cluster, pair)
    fault.inject(cluster, pair)
    chain = chain_name(fault.name, pair.name, fault.model_dump_json())
    remove_chain(cluster.runtime, cluster.node("kafka/broker-1").sandbox, chain)

    evidence = fault.evidence(cluster, pair, baseline)

    assert not evidence.in_effect
    assert not evidence.healed
    assert evidence.observations["rules_laid"] == "in 1 of 2 namespaces"


def test_the_rules_outlive_the_process_of_a_node_but_not_its_sandbox() -> None:
    cluster, fault = fake_cluster(WIDE), Partition()
    pair = _target(cluster, PAIR)
    baseline = fault.baseline(cluster, pair)
    fault.inject(cluster, pair)
    for name in ("flink/taskmanager-1", "kafka/broker-1"):
        cluster.runtime.kill(cluster.node(name).container)
        cluster.start_again(cluster.node(name))
    assert fault.evidence(cluster, pair, baseline).in_effect
    for name in ("flink/taskmanager-1", "kafka/broker-1"):
        cluster.runtime.kill(cluster.node(name).container)
        cluster.runtime.kill(cluster.node(name).sandbox)
        cluster.start_again(cluster.node(name))

    assert fault.evidence(cluster, pair, baseline).healed


def test_rules_cannot_be_added_in_a_sandbox_that_has_ended() -> None:
    cluster = fake_cluster(WIDE)
    pair = _target(cluster, PAIR)
    cluster.runtime.kill(cluster.node("kafka/broker-1").container)
    cluster.runtime.kill(cluster.node("kafka/broker-1").sandbox)

    with pytest.raises(ContainerError, match="no network namespace"):
        Partition().inject(cluster, pair)
    Partition().heal(cluster, pair, {})
    assert Partition().evidence(cluster, pair, {}).healed


def test_a_ring_of_three_nodes_is_rejected() -> None:
    cluster = fake_cluster(WIDE)
    node = _target(cluster, "kafka/broker-1")

    with pytest.raises(ValueError, match="too few nodes to divide"):
        RingPartition().inject(cluster, node)
    message = RingPartition.role_problem(WIDE, "kafka/broker")
    assert message is not None
    assert "needs 4 nodes or more, and kafka has 3" in message


def test_an_unused_link_is_not_stalled(tmp_path: Path) -> None:
    cluster = fake_cluster(WIDE)
    use_proxy(cluster, FakeToxiproxy(busy=False))

    injected = _injection(StallLink(), "link sink", cluster, tmp_path)

    assert not injected.done
    assert "bytes_delivered" in injected.reason


def test_a_recreated_proxy_is_recorded(tmp_path: Path) -> None:
    cluster, log = fake_cluster(WIDE), IntentLog(tmp_path / "intents.jsonl")
    proxy = FakeToxiproxy()
    use_proxy(cluster, proxy)
    intent = log.write_intent(step=0, fault=StallLink(), target="link sink", names=["sink"])
    StallLink().inject(cluster, _target(cluster, "link sink"))
    proxy.hangs = True

    healed = FaultInjector(cluster, log, limit_s=1).undo(intent)

    assert healed.done, healed.reason
    assert "recreated: sink:flink-taskmanager-1" in str(healed.evidence["watched"])


def test_invalid_parameters_are_rejected() -> None:
    with pytest.raises(ValidationError, match="'silent' or 'reset'"):
        Partition.model_validate({"how": "softly"})
    with pytest.raises(ValidationError, match="'reset'"):
        RefuseLink.model_validate({"how": "silent"})
    with pytest.raises(ValidationError, match="must be less than `average_bytes`"):
        SliceLink(average_bytes=10, variation_bytes=10)


@pytest.mark.parametrize(
    ("fault", "text"), [(Partition(), PAIR), (PowerOff(), "flink/taskmanager-1")]
)
def test_a_slow_machine_does_not_count_as_cut_off_before_the_fault(fault: Fault, text: str) -> None:
    cluster = fake_cluster(WIDE)
    _answer_after_a_second(cluster)

    baseline = fault.baseline(cluster, _target(cluster, text))

    assert {*baseline["answers"].values()} <= {"connected", "refused"}
    assert baseline["answers"]


@pytest.mark.parametrize("how", ["silent", "reset"])
def test_a_partition_and_its_heal_are_verified_on_a_slow_machine(how: str, tmp_path: Path) -> None:
    cluster = fake_cluster(WIDE)
    _answer_after_a_second(cluster)
    injector = FaultInjector(cluster, IntentLog(tmp_path / "intents.jsonl"), limit_s=1)

    evidence = injector.took_effect(Partition.model_validate({"how": how}), PAIR)

    answers = evidence["flink/taskmanager-1<->kafka/broker-1"]["answers"]
    assert set(answers.values()) == {"timed out" if how == "silent" else "refused"}


def _answer_after_a_second(cluster: Cluster) -> None:
    """Let every attempt with a limit below a second time out."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    tools = tuple(runtime.on_network_tool)

    def late(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        match argv:
            case ["bash", "-c", script, "bash", _, limit, _, *_] if script == INSPECT:
                if float(limit) >= 1:
                    return None
                done = next(done for tool in tools if (done := tool(spec, argv)) is not None)
                return replace(done, output=PROBED.sub(r"probe \1 124", done.output))
        return None

    runtime.on_network_tool.insert(0, late)
