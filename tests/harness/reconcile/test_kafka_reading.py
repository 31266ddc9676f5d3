"""Reading a real topic: committed, aborted and open transactions told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from streamquake.cluster.clock import SystemClock
from streamquake.cluster.cluster import Cluster, start_cluster
from streamquake.cluster.docker.images import DockerImages
from streamquake.cluster.docker.runtime import DockerRuntime
from streamquake.cluster.engines import kafka_admin
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import recipe
from streamquake.harness.reconcile.kafka import read_topic
from streamquake.harness.reconcile.stored import Stored
from streamquake.topologies.model import NodeGroup, Service, Topology

pytestmark = pytest.mark.container
TOPIC = "output"


@pytest.fixture
def broker(docker_run: DockerRuntime, run_id: str) -> Cluster:
    ensure([recipe("kafka")], DockerImages(), print)
    service = Service(engine="kafka", nodes={"broker": NodeGroup()})
    cluster = Cluster(
        run_id=run_id,
        topology=Topology(name="kafka-only", services={"kafka": service}),
        runtime=docker_run,
        clock=SystemClock(),
    )
    start_cluster(cluster, tags={}, limit_s=120, say=print)
    kafka_admin.create_topics(cluster, "kafka", {TOPIC: 2}, kafka_admin.STAMPED_ON_APPEND)
    return cluster


def transaction(broker: Cluster, name: str, values: range) -> Producer:
    """A transaction with some records on both partitions, not ended yet."""
    bootstrap = kafka_admin.bootstrap(broker, "kafka")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, str(value), key="k", partition=value % 2)
    producer.flush(30)
    return producer


def test_each_kind_of_transaction_is_told_apart(
    broker: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    transaction(broker, "first", range(10)).commit_transaction(30)
    transaction(broker, "second", range(100, 106)).abort_transaction(30)
    transaction(broker, "third", range(200, 204)).commit_transaction(30)
    hanging = transaction(broker, "fourth", range(300, 304))
    transaction(broker, "fifth", range(400, 402)).commit_transaction(30)

    into = Stored(path=tmp_path / TOPIC)
    read_topic(
        spark,
        kafka_admin.bootstrap(broker, "kafka"),
        TOPIC,
        stable_ends=kafka_admin.end_offsets(broker, "kafka", TOPIC),
        ends=kafka_admin.end_offsets(broker, "kafka", TOPIC, committed=False),
        into=into,
        began_ms=1,
    )
    hanging.abort_transaction(30)

    rows = into.frame(spark).collect()
    seen = {int(row.value) for row in rows if row.committed}
    hidden = {int(row.value) for row in rows if not row.committed}
    assert seen == {*range(10), *range(200, 204)}
    # Aborted; open; and committed, but behind the open one, where no committed reader gets to.
    assert hidden == {*range(100, 106), *range(300, 304), *range(400, 402)}
    facts = into.facts()
    assert (facts["records"], facts["uncommitted"]) == (14, 12)
    assert (facts["stamped"], facts["began_ms"]) == ("append", 1)
    assert sum(facts["ends"].values()) > sum(facts["stable_ends"].values())
