"""Records per second of the workload's producer, with two Kafka clients.

    python -m tests.benchmarks.bench_producer [BOOTSTRAP]

Without an address it starts a broker and removes it again. Both clients send the same records with
the same guarantees (idempotent, acks=all, a callback for each record). The arms are interleaved;
confluent-kafka runs in the workload's own sender.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka import KafkaProducer

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.harness.workloads.numbered import Numbered

RECORDS = 200_000
ROUNDS = 3
GOAL_PER_S = 50_000


def workload(topic: str) -> Numbered:
    """200-byte records, without an effective rate limit."""
    return Numbered(records=RECORDS, rate_per_s=10_000_000, payload_bytes=80, topic=topic)


def kafka_python(bootstrap: str, topic: str) -> int:
    """The same records through kafka-python."""
    acknowledged: list[int] = []
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=10,
        batch_size=262_144,
        delivery_timeout_ms=60_000,
    )

    def acknowledge(index: int, _: object) -> None:
        acknowledged.append(index)

    for record in workload(topic).load_definition(seed=1).between(0, RECORDS):
        sent = producer.send(topic, record.value(), record.key.encode(), partition=record.partition)
        sent.add_callback(partial(acknowledge, record.index))
    producer.flush()
    producer.close()
    return len(acknowledged)


def confluent(bootstrap: str, topic: str) -> int:
    """The workload's own sender, which uses confluent-kafka."""
    running = workload(topic).start(
        KafkaConnection(bootstrap), 1, SystemClock(), lambda note: None, lambda *sample: None
    )
    while not running.done:
        time.sleep(0.05)
    return running.sent


def main() -> None:
    with broker_address(sys.argv[1] if len(sys.argv) > 1 else None) as bootstrap:
        arms: dict[str, Callable[[str, str], int]] = {
            "confluent-kafka": confluent,
            "kafka-python": kafka_python,
        }
        rates: dict[str, list[float]] = {name: [] for name in arms}
        for round_number in range(ROUNDS):
            for name, send in arms.items():
                rates[name].append(measure(bootstrap, f"{name}-{os.getpid()}-{round_number}", send))
    for name, measured in rates.items():
        median = statistics.median(measured)
        verdict = "holds" if median >= GOAL_PER_S else "does not hold"
        print(
            f"{name:16} {median:10,.0f} records/s ({verdict} {GOAL_PER_S:,}); all: "
            + ", ".join(f"{rate:,.0f}" for rate in measured)
        )
    print(f"load average {os.getloadavg()[0]:.1f}, records of 200 bytes, {RECORDS:,} each")


def measure(bootstrap: str, topic: str, send: Callable[[str, str], int]) -> float:
    """Acknowledged records per second, from the first send to the last acknowledgement."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(timeout=30)
    began = time.perf_counter()
    acknowledged = send(bootstrap, topic)
    if acknowledged != RECORDS:
        raise RuntimeError(f"{topic}: {acknowledged:,} of {RECORDS:,} records were acknowledged")
    return RECORDS / (time.perf_counter() - began)


@contextmanager
def broker_address(given: str | None) -> Iterator[str]:
    """The given address, or a broker started for this measurement."""
    if given is not None:
        yield given
        return
    from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
    from streamquake.cluster.engines.kafka import admin as kafka_admin
    from streamquake.cluster.runtime.docker.runtime import DockerRuntime
    from streamquake.topologies.model import NodeGroup, Service, Topology

    broker = Service(engine="kafka", nodes={"broker": NodeGroup()})
    runtime, run_id = DockerRuntime(), f"bench-{os.getpid()}"
    cluster = Cluster(
        run_id=run_id,
        runtime=runtime,
        clock=SystemClock(),
        topology=Topology(name="kafka-only", services={"kafka": broker}),
    )
    try:
        start_cluster(cluster, tags={}, limit_s=120, show_message=print)
        yield kafka_admin.bootstrap(cluster, "kafka")
    finally:
        remove_cluster(runtime, run_id)


if __name__ == "__main__":
    main()
