"""A Kafka that another run started. It is used as `existing` together with an external job, which
Streamquake did not submit, and `reconcile` reads from it."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.harness.reconcile.avro_bytes import ORDER, WIDER, number, order, with_header
from tests.harness.reconcile.avro_bytes import text as avro_text
from tests.pace import at_pace

pytestmark = pytest.mark.container

STREAMQUAKE = (sys.executable, "-m", "streamquake")
TOPICS = ("orders", "copies")
EXPERIMENT = """\
name: external
topology: existing
job:
  existing: {group: copier, quiet_s: QUIET-S}
  promise:
    outputs:
      copies: {kafka: OUTPUT-TOPIC, identity: [key, seq], compare: [amount, checksum], order: seq}
    expected: SELECT key, seq, amount, checksum FROM sent
workload: {numbered: {records: 4000, rate_per_s: 500, keys: 16, topic: INPUT-TOPIC}}
faults:
  - {skew: {hot_share: 0.5}, target: the workload, at_s: 1, for_s: 2}
limits: {steady_s: STEADY-S, effect_s: EFFECT-S, drain_s: DRAIN-S}
checks: [exactly_once]
"""
LIMITS_S = {"QUIET-S": 5, "STEADY-S": 90, "EFFECT-S": 10, "DRAIN-S": 180}
"""The usual limits of a run, and the time without output after which its job is regarded as
finished. On a busy machine the job has longer pauses."""
COPY = {
    "type": "record",
    "name": "Copy",
    "fields": [
        {"name": "key", "type": "string"},
        *({"name": name, "type": "long"} for name in ("seq", "amount", "checksum")),
    ],
}
DIES = """\
import sys
from confluent_kafka import Producer
brokers, topic, name = sys.argv[1:]
producer = Producer({
    "bootstrap.servers": brokers, "transactional.id": name, "transaction.timeout.ms": 900_000,
    "partitioner": "murmur2_random",
})
producer.init_transactions(30)
producer.begin_transaction()
producer.produce(topic, "{}", "k-00000")
assert producer.flush(30) == 0
print("open", flush=True)
sys.stdin.read()
"""


def streamquake(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STREAMQUAKE, *words], capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka that keeps running and whose topics have records of another
    producer."""
    out = str(tmp_path_factory.mktemp("up"))
    started = streamquake("up", "kafka-only", "--out", out)
    assert started.returncode == 0, started.stdout + started.stderr
    (run,) = (path.name for path in Path(out).iterdir() if path.name != "latest")
    try:
        status = json.loads(streamquake("status", "--run", run, "--json").stdout)
        (address,) = (p["address"] for node in status["nodes"] for p in node["ports"])
        create_topics(address, *TOPICS)
        producer = Producer({"bootstrap.servers": address})
        producer.produce("copies", '{"key": "k-00000", "seq": 0, "amount": 1}', "k-00000")
        assert producer.flush(30) == 0
        yield str(address)
    finally:
        down = streamquake("down", "--run", run)
        assert down.returncode == 0, down.stdout + down.stderr


def create_topics(brokers: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    futures = admin.create_topics([NewTopic(name, num_partitions=4) for name in names])
    assert [answer.result(30) for answer in futures.values()] == [None] * len(names)


@contextmanager
def copier(
    brokers: str,
    topics: tuple[str, str] = TOPICS,
    *,
    drops: int = 0,
    encode: Callable[[bytes], bytes] = bytes,
) -> Iterator[None]:
    """An external job, which Streamquake did not submit. It copies records from one topic to the
    other, with values encoded by `encode`. It drops every `drops`-th record, or none where that is
    0."""
    source, output = topics
    stop, assigned = threading.Event(), threading.Event()

    def from_the_end(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # The end offsets are queried now: the first poll may be after the first record was sent.
        for partition in partitions:
            partition.offset = consumer.get_watermark_offsets(partition, 30)[1]
        consumer.assign(partitions)
        assigned.set()

    def copy() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": "copier",
                "auto.commit.interval.ms": 500,
            }
        )
        consumer.subscribe([source], on_assign=from_the_end)
        producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random"})
        taken = 0
        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                taken += 1
                value = message.value()
                if value is not None and (not drops or taken % drops):
                    producer.produce(output, encode(value), message.key())
            producer.poll(0)
        producer.flush(10)
        consumer.close()

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        assert assigned.wait(at_pace(60)), "the group has no partitions assigned"
        yield
    finally:
        stop.set()
        thread.join()


def run_experiment(
    brokers: str, folder: Path, topics: tuple[str, str] = TOPICS, more: str = ""
) -> tuple[int, dict[str, Any], str]:
    """Run the experiment and return (exit status, results, printed output). `more` is appended to
    the output's settings."""
    experiment = folder / "external.yaml"
    text = EXPERIMENT.replace("INPUT-TOPIC", topics[0]).replace("OUTPUT-TOPIC", topics[1] + more)
    for name, limit_s in LIMITS_S.items():
        text = text.replace(name, f"{at_pace(limit_s):.0f}")
    experiment.write_text(text, encoding="utf-8")
    done = streamquake(
        "run",
        str(experiment),
        "--out",
        str(folder / "runs"),
        "--seed",
        str(secrets.randbelow(99)),
        "--set",
        f"topology.services.kafka.endpoint={brokers}",
    )
    results = folder / "runs" / "latest" / "results.json"
    message = done.stdout + done.stderr
    assert results.exists(), message
    return done.returncode, json.loads(results.read_text(encoding="utf-8")), message


@pytest.mark.nightly
def test_the_output_of_an_external_job_is_reconciled(brokers: str, tmp_path: Path) -> None:
    with copier(brokers):
        status, results, message = run_experiment(brokers, tmp_path)
    assert (status, results["outcome"]) == (0, "held"), message
    (fault,) = results["faults"]
    assert fault["in_effect"]
    assert fault["healed"]


@pytest.mark.nightly
def test_records_that_an_external_job_drops_are_counted_as_lost(
    brokers: str, tmp_path: Path
) -> None:
    with copier(brokers, drops=100):
        status, results, message = run_experiment(brokers, tmp_path)
    assert (status, results["outcome"]) == (1, "violated"), message
    assert counts_of(results)["lost"] >= 30


@pytest.mark.nightly
def test_avro_output_of_an_external_job_is_reconciled(brokers: str, tmp_path: Path) -> None:
    """One of its records is not Avro."""
    topics = ("plain", "packed")
    create_topics(brokers, *topics)
    (tmp_path / "copy.avsc").write_text(json.dumps(COPY), encoding="utf-8")
    recorded = ", format: avro, schema: copy.avsc, header: confluent"

    def in_avro(value: bytes) -> bytes:
        record = json.loads(value)
        if (record["key"], record["seq"]) == ("k-00003", 7):
            return b"none"
        rest = b"".join(number(record[name]) for name in ("seq", "amount", "checksum"))
        return with_header(7, avro_text(record["key"].encode()) + rest)

    with copier(brokers, topics, encode=in_avro):
        status, results, message = run_experiment(brokers, tmp_path, topics, recorded)

    assert (status, results["outcome"]) == (1, "violated"), message
    found = {name: count for name, count in counts_of(results).items() if "." not in name}
    wrong = ("lost", "duplicated", "phantom", "changed", "reordered", "malformed")
    assert {name: found[name] for name in wrong if found.get(name)} == {
        "lost": 1,
        "phantom": 1,
        "malformed": 1,
    }


@pytest.mark.nightly
def test_records_held_back_by_an_open_transaction_are_invisible_not_permanently_lost(
    brokers: str, tmp_path: Path
) -> None:
    """Its producer died, and the transaction stays open longer than any command here may take, so a
    command that waits for its end fails. A reader of uncommitted records reads the records that it
    held back."""
    topics = ("input", "hidden")
    create_topics(brokers, *topics)
    die_in_a_transaction(brokers, "hidden", "dies")

    with copier(brokers, topics):
        status, results, message = run_experiment(brokers, tmp_path, topics)
    sides = (f"kafka://{brokers}/input", f"kafka://{brokers}/hidden")
    requested = ("--key", "key", "--sequence", "seq", "--compare", "amount,checksum")
    while_open = reconcile(tmp_path, *sides, *requested)
    Producer({"bootstrap.servers": brokers, "transactional.id": "dies"}).init_transactions(30)
    once_ended = reconcile(tmp_path, *sides, *requested)
    by_any = reconcile(tmp_path, sides[0], f"{sides[1]}?isolation=read_uncommitted", *requested)

    assert (status, results["outcome"]) == (1, "violated"), message
    counts = counts_of(results)
    hidden = counts["invisible"]
    assert hidden > 0
    assert (counts["lost"], counts["held_back"]) == (hidden, hidden)
    assert while_open["counts"]["lost"] == hidden
    # The transaction's own record is before them.
    assert f"{hidden + 1} offsets are held back by a transaction" in while_open["notes"][0]
    assert (once_ended["outcome"], once_ended["notes"]) == ("held", [])
    assert once_ended["counts"]["actual"] == counts["expected"]
    assert by_any["counts"] == {
        **once_ended["counts"],
        "actual": counts["expected"] + 1,
        "phantom": 1,
    }


def die_in_a_transaction(brokers: str, topic: str, name: str) -> None:
    """Kill a producer in an open transaction of one record. The record is in the partition to which
    the copies of the same key will be written."""
    with subprocess.Popen(
        [sys.executable, "-c", DIES, brokers, topic, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as producer:
        assert producer.stdout is not None
        assert producer.stdout.readline() == "open\n"
        producer.kill()


@pytest.mark.nightly
def test_avro_in_a_topic_is_read_by_the_schema_that_each_header_names(
    brokers: str, tmp_path: Path
) -> None:
    """Half of the records have an older schema. One record is missing, one is changed, one has no
    header."""
    create_topics(brokers, "avro")
    rows = [(n, None if n % 7 == 0 else f"é {n}") for n in range(200)]
    values = [
        with_header(258, order(n, words, n=n)) if n % 2 else with_header(3, order(n, words))
        for n, words in (*rows[:50], *rows[51:60], (60, "other"), *rows[61:])
    ]
    producer = Producer({"bootstrap.servers": brokers})
    for change, value in enumerate((*values, order(1, "a"))):
        producer.produce("avro", value, partition=change % 4)
    assert producer.flush(30) == 0
    (tmp_path / "old.avsc").write_text(json.dumps(ORDER), encoding="utf-8")
    (tmp_path / "new.avsc").write_text(json.dumps(WIDER), encoding="utf-8")
    (tmp_path / "avro.yaml").write_text(
        "format: avro\nschema: {3: old.avsc, 258: new.avsc}\nheader: confluent\n", encoding="utf-8"
    )
    lines = (json.dumps({"id": n, "text": words}) for n, words in rows)
    (tmp_path / "sent.jsonl").write_text("\n".join(lines), encoding="utf-8")

    document = reconcile(
        tmp_path,
        str(tmp_path / "sent.jsonl"),
        f"kafka://{brokers}/avro",
        "--key",
        "id",
        "--compare",
        "text",
        "--actual-map",
        str(tmp_path / "avro.yaml"),
    )

    counts = {name: count for name, count in document["counts"].items() if count}
    assert counts == {
        "expected": 200,
        "actual": 200,
        "lost": 1,
        "changed": 1,
        "phantom": 1,
        "malformed": 1,
    }


@pytest.mark.nightly
def test_several_topics_are_reconciled_as_one_side(brokers: str, tmp_path: Path) -> None:
    """Every key moves from one topic to the other halfway, which is not reordering. One record is
    in both topics, one in none, and one is before its predecessor in one topic."""
    create_topics(brokers, "east", "west")
    rows = [(f"k{key}", n) for n in range(100) for key in range(8)]
    topics = {
        "east": [row for row in rows if row[1] < 50 and row != ("k3", 7)],
        "west": [
            ("k2", 99),
            *(row for row in rows if row[1] >= 50 and row != ("k2", 99)),
            ("k1", 3),
        ],
    }
    producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random"})
    for topic, records in reversed(topics.items()):
        for key, n in records:
            producer.produce(topic, json.dumps({"id": key, "n": n}), key)
    assert producer.flush(30) == 0
    lines = (json.dumps({"id": key, "n": n}) for key, n in rows)
    (tmp_path / "sent.jsonl").write_text("\n".join(lines), encoding="utf-8")

    document = reconcile(
        tmp_path,
        str(tmp_path / "sent.jsonl"),
        f"kafka://{brokers}/east",
        "--actual",
        f"kafka://{brokers}/west",
        "--key",
        "id",
        "--sequence",
        "n",
        "--compare",
        "n",
        "--actual-compare",
        "IF(_topic IN ('east', 'west'), n, NULL)",
    )

    counts = {name: count for name, count in document["counts"].items() if count}
    assert counts == {
        "expected": 800,
        "actual": 800,
        "lost": 1,
        "duplicated": 1,
        "reordered": 1,
    }


def reconcile(folder: Path, expected: str, actual: str, *options: str) -> dict[str, Any]:
    """The JSON results of `reconcile` for two sides."""
    found = folder / "found.json"
    done = streamquake(
        "reconcile", "--expected", expected, "--actual", actual, *options, "--json", str(found)
    )
    document: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    assert (done.returncode == 0) == (document["outcome"] == "held"), done.stdout + done.stderr
    return document


def counts_of(results: dict[str, Any]) -> dict[str, int]:
    (found,) = (each for each in results["checks"] if each["check"] == "exactly_once")
    counts: dict[str, int] = found["counts"]
    return counts
