"""A Kafka that another run started, and a job that nobody submitted, used as `existing`."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

pytestmark = pytest.mark.container

STREAMQUAKE = (sys.executable, "-m", "streamquake")
TOPICS = ("orders", "copies")
EXPERIMENT = """\
name: theirs
topology: existing
job:
  existing: {group: copier, quiet_s: 5}
  promise:
    outputs:
      copies: {kafka: copies, identity: [key, seq], compare: [amount, checksum], order: seq}
    expected: SELECT key, seq, amount, checksum FROM sent
workload: {numbered: {records: 4000, rate_per_s: 500, keys: 16, topic: orders}}
faults:
  - {skew: {hot_share: 0.5}, target: the workload, at_s: 1, for_s: 2}
checks: [exactly_once]
"""


def streamquake(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STREAMQUAKE, *words], capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka that stays up, whose topics hold what others wrote."""
    out = str(tmp_path_factory.mktemp("up"))
    started = streamquake("up", "kafka-only", "--out", out)
    assert started.returncode == 0, started.stdout + started.stderr
    (run,) = (path.name for path in Path(out).iterdir() if path.name != "latest")
    try:
        status = json.loads(streamquake("status", "--run", run, "--json").stdout)
        (address,) = (p["address"] for node in status["nodes"] for p in node["ports"])
        admin = AdminClient({"bootstrap.servers": address})
        made = admin.create_topics([NewTopic(name, num_partitions=4) for name in TOPICS])
        assert [answer.result(30) for answer in made.values()] == [None, None]
        others = Producer({"bootstrap.servers": address})
        others.produce("copies", '{"key": "k-00000", "seq": 0, "amount": 1}', "k-00000")
        assert others.flush(30) == 0
        yield str(address)
    finally:
        down = streamquake("down", "--run", run)
        assert down.returncode == 0, down.stdout + down.stderr


@contextmanager
def copier(brokers: str, *, loses: int = 0) -> Iterator[None]:
    """A job of somebody else's: it copies what comes, but for each record of a multiple of
    `loses`."""
    stop, reads = threading.Event(), threading.Event()

    def from_the_end(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # Found out now, not at the first poll after the first record was sent.
        for partition in partitions:
            partition.offset = consumer.get_watermark_offsets(partition, 30)[1]
        consumer.assign(partitions)
        reads.set()

    def copy() -> None:
        consumer = Consumer({
            "bootstrap.servers": brokers, "group.id": "copier", "auto.commit.interval.ms": 500,
        })  # fmt: skip
        consumer.subscribe(["orders"], on_assign=from_the_end)
        producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random"})
        taken = 0
        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                taken += 1
                if not loses or taken % loses:
                    producer.produce("copies", message.value(), message.key())
            producer.poll(0)
        producer.flush(10)
        consumer.close()

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        assert reads.wait(60), "the group has not got its partitions"
        yield
    finally:
        stop.set()
        thread.join()


def judged(brokers: str, folder: Path) -> tuple[int, dict[str, Any], str]:
    experiment = folder / "theirs.yaml"
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    done = streamquake(
        "run", str(experiment), "--out", str(folder / "runs"), "--seed", str(secrets.randbelow(99)),
        "--set", f"topology.services.kafka.endpoint={brokers}",
    )  # fmt: skip
    results = folder / "runs" / "latest" / "results.json"
    said = done.stdout + done.stderr
    assert results.exists(), said
    return done.returncode, json.loads(results.read_text(encoding="utf-8")), said


def test_what_a_job_of_others_does_is_reconciled(brokers: str, tmp_path: Path) -> None:
    with copier(brokers):
        status, results, said = judged(brokers, tmp_path)
    assert (status, results["outcome"]) == (0, "held"), said
    (fault,) = results["faults"]
    assert fault["in_effect"]
    assert fault["healed"]


def test_what_it_loses_is_found(brokers: str, tmp_path: Path) -> None:
    with copier(brokers, loses=100):
        status, results, said = judged(brokers, tmp_path)
    assert (status, results["outcome"]) == (1, "violated"), said
    (found,) = (each for each in results["checks"] if each["check"] == "exactly_once")
    assert found["counts"]["lost"] >= 30
