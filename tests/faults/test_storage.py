"""Faults of brokers and of the NameNode, beyond the contract of all faults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka import log as kafka_log
from streamquake.cluster.engines.kafka.brokers import OPEN, Transaction
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, ExecResult
from streamquake.faults.catalogue.expire_transactions import ExpireTransactions
from streamquake.faults.catalogue.lose_unflushed_log import LOG, MARK, LoseUnflushedLog
from streamquake.faults.catalogue.namenode_safe_mode import NameNodeSafeMode
from streamquake.faults.catalogue.shrink_isr import ShrinkIsr
from streamquake.faults.fault import Evidence, Fault
from streamquake.harness.experiment.validation import fault_target_problem
from tests.fakes import TOPOLOGY, WIDE, fake_cluster
from tests.fakes.worlds.storage import SEGMENT, FakeBrokers

BROKER = "kafka/broker-3"


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


@pytest.fixture
def broker(cluster: Cluster) -> Node:
    return cluster.node(BROKER)


def files(cluster: Cluster, node: Node) -> dict[str, str]:
    assert isinstance(cluster.runtime, FakeRuntime)
    return cluster.runtime.containers[node.container].files


def injected(fault: Fault, cluster: Cluster, node: Node) -> tuple[Mapping[str, Any], Evidence]:
    baseline = json.loads(json.dumps(fault.baseline(cluster, node)))
    fault.inject(cluster, node)
    return baseline, fault.evidence(cluster, node, baseline)


@pytest.mark.parametrize(
    ("fault", "target", "message"),
    [
        (NameNodeSafeMode(), "hdfs/datanode-1", "only a NameNode has a safe mode"),
        (NameNodeSafeMode(), "kafka/broker-1", "works on hdfs"),
        (ShrinkIsr(), "flink/jobmanager-1", "works on kafka"),
        (LoseUnflushedLog(), "the datanode holding /x", "works on kafka"),
    ],
)
def test_an_unsuitable_target_is_rejected(fault: Fault, target: str, message: str) -> None:
    assert message in str(fault_target_problem(fault, target, WIDE))


def test_a_single_broker_cannot_leave_the_in_sync_replicas() -> None:
    assert "nothing is replicated" in str(
        fault_target_problem(ShrinkIsr(), "kafka/broker-1", TOPOLOGY)
    )


def test_faults_that_lose_data_are_never_drawn() -> None:
    assert not LoseUnflushedLog.drawn
    assert not ExpireTransactions.drawn


def test_a_restarted_namenode_is_not_in_safe_mode(cluster: Cluster) -> None:
    fault, node = NameNodeSafeMode(), cluster.node("hdfs/namenode-1")
    baseline, evidence = injected(fault, cluster, node)
    assert evidence.in_effect
    assert "SafeModeException" in evidence.observations["a_new_folder"]
    cluster.runtime.kill(node.container)
    assert fault.evidence(cluster, node, baseline).healed
    fault.heal(cluster, node, baseline)
    cluster.start_again(node)
    evidence = fault.evidence(cluster, node, baseline)
    assert evidence.healed
    assert evidence.observations["state"] == "Operational"


def test_a_starting_namenode_is_not_forced_out_of_safe_mode(cluster: Cluster) -> None:
    assert isinstance(cluster.runtime, FakeRuntime)
    fault, node = NameNodeSafeMode(), cluster.node("hdfs/namenode-1")
    baseline, _ = injected(fault, cluster, node)
    cluster.runtime.kill(node.container)
    cluster.start_again(node)
    loading = ExecResult(exit_code=255, output="Connection refused")
    cluster.runtime.on_exec.insert(0, lambda spec, argv: loading)
    fault.heal(cluster, node, baseline)
    assert fault.evidence(cluster, node, baseline).healed


def test_a_frozen_namenode_proves_nothing(cluster: Cluster) -> None:
    node = cluster.node("hdfs/namenode-1")
    cluster.runtime.pause(node.container)
    evidence = NameNodeSafeMode().evidence(cluster, node, {})
    assert (evidence.in_effect, evidence.healed) == (False, False)
    assert "unanswered" in evidence.observations


def test_a_failure_of_the_administration_tool_is_raised(cluster: Cluster) -> None:
    assert isinstance(cluster.runtime, FakeRuntime)
    rejected = ExecResult(exit_code=255, output="Connection refused")
    cluster.runtime.on_exec.insert(0, lambda spec, argv: rejected)
    with pytest.raises(ContainerError, match=r"hdfs/namenode-1: dfsadmin .* Connection refused"):
        NameNodeSafeMode().inject(cluster, cluster.node("hdfs/namenode-1"))


def test_an_unflushed_log_is_truncated_and_recorded_by_segment(
    cluster: Cluster, broker: Node
) -> None:
    _, evidence = injected(LoseUnflushedLog(), cluster, broker)
    assert evidence.in_effect
    assert evidence.observations["bytes_lost"] == 7_000
    remaining = files(cluster, broker)
    assert remaining[f"{LOG}/input-0/{SEGMENT}"] == ""
    assert len(remaining[f"{LOG}/{kafka_log.METADATA}/{SEGMENT}"]) == 500


def test_a_broker_with_nothing_unflushed_loses_nothing(cluster: Cluster, broker: Node) -> None:
    for number in (0, 1):
        files(cluster, broker)[f"{LOG}/input-{number}/{SEGMENT}"] = ""
    _, evidence = injected(LoseUnflushedLog(), cluster, broker)
    assert not evidence.in_effect
    assert evidence.observations["status"] == "exited"


def test_a_foreign_kill_is_not_in_effect_despite_an_old_mark(
    cluster: Cluster, broker: Node
) -> None:
    fault = LoseUnflushedLog()
    injected(fault, cluster, broker)
    cluster.start_again(broker)
    assert not fault.evidence(cluster, broker, {}).healed, "the mark is still there"
    cluster.runtime.kill(broker.container)
    assert not fault.evidence(cluster, broker, {}).in_effect
    fault.heal(cluster, broker, {})
    assert fault.evidence(cluster, broker, {}).healed
    assert MARK not in files(cluster, broker)


def test_a_broker_stopped_during_a_truncation_is_killed_by_the_heal(
    cluster: Cluster, broker: Node
) -> None:
    state = cluster.state(broker)
    head = json.dumps({"started_at": state.started_at, "before": {}})
    files(cluster, broker)[MARK] = f"{head}\n"
    LoseUnflushedLog().heal(cluster, broker, {})
    assert cluster.state(broker).pid != state.pid, "killed and restarted"
    assert LoseUnflushedLog().evidence(cluster, broker, {}).healed


def test_a_log_that_cannot_be_truncated_leaves_no_stopped_broker(
    cluster: Cluster, broker: Node
) -> None:
    assert isinstance(cluster.runtime, FakeRuntime)
    busy = ExecResult(exit_code=3, output="the broker could not be stopped")
    cluster.runtime.on_exec.insert(0, lambda spec, argv: busy)
    with pytest.raises(ContainerError, match="kafka/broker-3: the log could not be truncated"):
        LoseUnflushedLog().inject(cluster, broker)
    assert cluster.state(broker).status == ContainerStatus.EXITED


def test_only_the_transactions_of_the_given_prefix_expire(cluster: Cluster) -> None:
    known = cluster.clients["kafka"]
    assert isinstance(known, FakeBrokers)
    one = known.transaction_states[2]
    known.transaction_states.append(replace(one, id="test-copies-0-1"))
    _, evidence = injected(ExpireTransactions(of="copies"), cluster, cluster.node(BROKER))
    assert evidence.observations["aborted"] == ["test-copies-0-1 of epoch 1"]
    assert known.transaction_states[2] == one


def test_transactions_aborted_before_prove_nothing(cluster: Cluster, broker: Node) -> None:
    fault = ExpireTransactions()
    _, evidence = injected(fault, cluster, broker)
    assert evidence.in_effect
    _, evidence = injected(fault, cluster, broker)
    assert not evidence.in_effect, "nothing was open any more"


def test_the_fault_waits_for_a_transaction_to_open(
    cluster: Cluster, broker: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cluster.clients["kafka"]
    assert isinstance(known, FakeBrokers)
    later = known.transaction_states
    known.transaction_states = []
    sleep = cluster.clock.sleep

    def open_later(seconds: float) -> None:
        sleep(seconds)
        known.transaction_states = later

    monkeypatch.setattr(cluster.clock, "sleep", open_later)
    _, evidence = injected(ExpireTransactions(), cluster, broker)
    assert evidence.in_effect


def test_the_next_transaction_expires_if_the_sink_commits_first(
    cluster: Cluster, broker: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cluster.clients["kafka"]
    assert isinstance(known, FakeBrokers)
    (opened,) = [t for t in known.transaction_states if t.state == OPEN and t.coordinator == 3]
    expire, late = known.expire, iter([opened])

    def commit_first(transaction: Transaction) -> None:
        if next(late, None) is None:
            expire(transaction)
            return
        place = known.transaction_states.index(transaction)
        known.transaction_states[place] = replace(transaction, state="CompleteCommit", epoch=9)
        known.transaction_states.append(replace(transaction, id="test-copies-0-2"))

    monkeypatch.setattr(known, "expire", commit_first)
    _, evidence = injected(ExpireTransactions(), cluster, broker)
    assert evidence.observations["aborted"] == ["test-copies-0-2 of epoch 1"]


def test_without_an_open_transaction_the_fault_is_not_in_effect(
    cluster: Cluster, broker: Node
) -> None:
    known = cluster.clients["kafka"]
    assert isinstance(known, FakeBrokers)
    known.transaction_states = []
    _, evidence = injected(ExpireTransactions(), cluster, broker)
    assert not evidence.in_effect


@pytest.mark.parametrize("fault", [ShrinkIsr(), ExpireTransactions()])
def test_brokers_that_do_not_answer_prove_nothing(
    fault: Fault, cluster: Cluster, broker: Node
) -> None:
    for node in cluster.of_role("kafka/broker"):
        cluster.runtime.pause(node.container)
    evidence = fault.evidence(cluster, broker, {})
    assert (evidence.in_effect, evidence.healed) == (False, False)
    assert "unanswered" in evidence.observations


def test_a_restarted_broker_is_in_sync_again(cluster: Cluster, broker: Node) -> None:
    fault = ShrinkIsr()
    baseline, _ = injected(fault, cluster, broker)
    assert baseline["in_sync_with"] == ["input/0", "input/1"]
    cluster.runtime.kill(broker.container)
    cluster.start_again(broker)
    fault.heal(cluster, broker, baseline)
    assert fault.evidence(cluster, broker, baseline).healed
