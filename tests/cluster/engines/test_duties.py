"""The nodes that have a duty now, in the notations of the engines."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import RemembersRuns, engine
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import ABORTED
from streamquake.faults.schedule.target import parse_target, resolve, target_problem
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.storage import FakeBrokers


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def found(cluster: Cluster, target: str) -> list[str]:
    return [node.name for node in resolve(parse_target(target), cluster, random.Random(0))]


def known_brokers(cluster: Cluster) -> FakeBrokers:
    known = cluster.clients["kafka"]
    assert isinstance(known, FakeBrokers)
    return known


@pytest.mark.parametrize(
    ("target", "node"),
    [
        ("the leader of partition 1 of input", "kafka/broker-2"),
        ("the follower of partition 1 of input", "kafka/broker-1"),
        ("the controller", "kafka/broker-1"),
        ("the transaction coordinator of totals-3", "kafka/broker-3"),
        ("the transaction coordinator of test-totals-2-1", "kafka/broker-2"),
        ("the transaction coordinator", "kafka/broker-1"),
        ("the datanode holding /kept", "hdfs/datanode-2"),
    ],
)
def test_each_duty_is_found(cluster: Cluster, target: str, node: str) -> None:
    assert target_problem(parse_target(target), WIDE) is None
    assert found(cluster, target) == [node]


def test_a_duty_moves_when_its_node_has_ended(cluster: Cluster) -> None:
    assert found(cluster, "the leader of partition 0 of input") == ["kafka/broker-1"]
    cluster.runtime.kill(cluster.node("kafka/broker-1").container)
    assert found(cluster, "the leader of partition 0 of input") == ["kafka/broker-2"]


def test_ids_that_only_earlier_runs_used_have_no_coordinator(cluster: Cluster) -> None:
    known = known_brokers(cluster)
    runner = engine("kafka")
    assert isinstance(runner, RemembersRuns)
    first, second, third = (replace(t, state=ABORTED) for t in known.transaction_states)
    known.transaction_states[:] = [first, replace(second, id="test-totals-1-2"), third]
    remembered = {"kafka": runner.remembered(cluster, "kafka")}
    with cluster.used_by("test", remembered):
        with pytest.raises(LookupError, match="no transactional id at all"):
            found(cluster, "the transaction coordinator")
        known.transaction_states[2] = replace(third, epoch=third.epoch + 1)
        assert found(cluster, "the transaction coordinator") == ["kafka/broker-3"]


def test_what_a_silent_broker_remembers_is_not_known(cluster: Cluster) -> None:
    known_brokers(cluster).silent = ("kafka/broker-2: timed out",)
    runner = engine("kafka")
    assert isinstance(runner, RemembersRuns)
    with pytest.raises(KafkaUnreachable, match="broker-2: timed out"):
        runner.remembered(cluster, "kafka")


def test_the_coordinator_is_that_of_the_most_open_transactions(cluster: Cluster) -> None:
    known = known_brokers(cluster)
    first, second, third = known.transaction_states
    known.transaction_states[:] = [replace(first, state=ABORTED), second, third]
    assert found(cluster, "the transaction coordinator") == ["kafka/broker-2"]
    known.transaction_states.append(replace(third, id="test-more-3-1"))
    assert found(cluster, "the transaction coordinator") == ["kafka/broker-3"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("the leader of partition 9 of input", "no partition input/9; there are: input/0"),
        ("the transaction coordinator of unknown", "no transactional id that begins with unknown"),
        ("the datanode holding /lost", "no DataNode of hdfs holds /lost"),
    ],
)
def test_a_duty_without_a_node_is_rejected_with_the_reason(
    cluster: Cluster, target: str, words: str
) -> None:
    with pytest.raises(LookupError, match=words):
        found(cluster, target)


def test_a_duty_of_an_unreachable_service_is_an_error(cluster: Cluster) -> None:
    for node in cluster.of_role("kafka/broker"):
        cluster.runtime.kill(node.container)
    cluster.runtime.kill(cluster.node("hdfs/namenode-1").container)
    for target in ("the controller", "the datanode holding /kept"):
        with pytest.raises(LookupError, match="is not known"):
            found(cluster, target)


def test_a_partition_without_leader_or_follower_is_an_error() -> None:
    cluster = fake_cluster(WIDE)
    known = known_brokers(cluster)
    partition = FakeBrokers(cluster, "kafka").partitions()[0]
    without_followers = replace(partition, in_sync=(partition.leader,))
    known.partitions = lambda: (without_followers,)  # type: ignore[method-assign]
    with pytest.raises(LookupError, match="has no follower in sync"):
        found(cluster, "the follower of partition 0 of input")
    known.partitions = lambda: (replace(partition, leader=-1),)  # type: ignore[method-assign]
    with pytest.raises(LookupError, match="has no leader"):
        found(cluster, "the leader of partition 0 of input")


def test_an_unknown_duty_is_rejected_with_the_known_ones() -> None:
    problem = target_problem(parse_target("the boss"), WIDE)
    assert problem is not None
    assert '"the leader of partition N of TOPIC"' in problem
    with pytest.raises(LookupError, match="can be"):
        engine("kafka").on_duty(fake_cluster(WIDE), "kafka", "boss")  # type: ignore[attr-defined]


def test_kafka_is_pending_while_a_broker_does_not_answer(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamquake.cluster.engines.kafka.admin.pending", lambda *_: None)
    assert engine("kafka").pending(cluster, "kafka") is None
    cluster.runtime.pause(cluster.node("kafka/broker-2").container)
    assert engine("kafka").pending(cluster, "kafka") == "no answer yet from kafka/broker-2"
