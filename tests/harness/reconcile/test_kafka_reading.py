"""Reads a real topic and distinguishes committed, aborted and open transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from streamquake.cluster.cluster import Cluster, start_cluster
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.images import DockerImages
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.reconcile.compare import compare
from streamquake.harness.reconcile.comparison import ComparisonRequest, DataComparison, Side
from streamquake.harness.reconcile.reading.source import source_of
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.topologies.model import NodeGroup, Service, Topology
from tests.harness.reconcile.whole_topic import read_topic

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
    start_cluster(cluster, tags={}, limit_s=120, show_message=print)
    kafka_admin.create_topics(cluster, "kafka", {TOPIC: 2}, kafka_admin.STAMPED_ON_APPEND)
    return cluster


def transaction(
    broker: Cluster, name: str, values: Iterable[int], value_text: Callable[[int], str] = str
) -> Producer:
    """An open transaction with some records in both partitions."""
    bootstrap = kafka_admin.bootstrap(broker, "kafka")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value_text(value), key="k", partition=value % 2)
    producer.flush(30)
    return producer


def test_kinds_of_transactions_are_distinguished(
    broker: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    transaction(broker, "first", range(10)).commit_transaction(30)
    transaction(broker, "second", range(100, 106)).abort_transaction(30)
    transaction(broker, "third", range(200, 204)).commit_transaction(30)
    open_transaction = transaction(broker, "fourth", range(300, 304))
    transaction(broker, "fifth", range(400, 402)).commit_transaction(30)

    into = StoredOutput(path=tmp_path / TOPIC)
    read_topic(
        spark,
        kafka_admin.bootstrap(broker, "kafka"),
        TOPIC,
        stable_ends=kafka_admin.end_offsets(broker, "kafka", TOPIC),
        ends=kafka_admin.end_offsets(broker, "kafka", TOPIC, committed=False),
        into=into,
        began_ms=1,
    )
    open_transaction.abort_transaction(30)

    rows = into.frame(spark).collect()
    committed_values = {int(row.value) for row in rows if row.committed}
    uncommitted_values = {int(row.value) for row in rows if not row.committed}
    assert committed_values == {*range(10), *range(200, 204)}
    # Aborted; open; and committed after the open one, where `read_committed` consumers do not read.
    assert uncommitted_values == {*range(100, 106), *range(300, 304), *range(400, 402)}
    facts = into.facts()
    assert (facts["records"], facts["uncommitted"]) == (14, 12)
    assert (facts["stamped"], facts["began_ms"]) == ("append", 1)
    assert sum(facts["ends"].values()) > sum(facts["stable_ends"].values())


def test_a_topic_is_compared_up_to_its_stable_end_at_the_start(
    broker: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """4 is before 2 in its partition. Records that were aborted, are uncommitted or were sent later
    are absent."""

    def send(name: str, values: Iterable[int]) -> Producer:
        return transaction(broker, name, values, lambda value: f'{{"n": {value}}}')

    (tmp_path / "e.json").write_text("".join(f'{{"id": "k", "n": {n}}}\n' for n in range(9)))
    uri = f"kafka://{kafka_admin.bootstrap(broker, 'kafka')}/{TOPIC}"
    send("first", [0, 1, 4, 2, 3, 5, 6]).commit_transaction(30)
    send("second", [7]).abort_transaction(30)
    send("third", [6]).commit_transaction(30)
    request = ComparisonRequest(
        expected=Side(name="expected", uris=("e.json",), key="id", sequence="n"),
        actual=Side(name="actual", uris=(uri,), key="_key", sequence="n"),
    )

    expected, actual = (
        source_of([str(tmp_path / "e.json")], "--expected"),
        source_of([uri], "--actual"),
    )
    expected.inspect()
    actual.inspect()
    send("late", [8]).commit_transaction(30)
    first_comparison = compare(spark, request, expected, actual, print)
    open_transaction = send("fourth", [7, 8])
    actual.inspect()
    later_comparison = compare(spark, request, expected, actual, print)
    open_transaction.abort_transaction(30)

    def counts_of(comparison: DataComparison) -> dict[str, int | None]:
        classes = ("expected", "actual", "lost", "duplicated", "phantom", "changed", "reordered")
        return {name: comparison.counts[name] for name in classes}

    once = {"expected": 9, "phantom": 0, "changed": None, "duplicated": 1, "reordered": 1}
    assert counts_of(first_comparison) == {**once, "actual": 8, "lost": 2}
    assert counts_of(later_comparison) == {**once, "actual": 9, "lost": 1}
    assert (first_comparison.notes, len(later_comparison.notes)) == ((), 1)
    assert "held back by a transaction that is still open" in later_comparison.notes[0]
