"""A Kafka that another run started: used as `existing` beside a job that Streamquake did not
submit, and read by `reconcile`."""

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
      copies: {kafka: OUTPUT-TOPIC, identity: [key, seq], compare: [amount, checksum], order: seq}
    expected: SELECT key, seq, amount, checksum FROM sent
workload: {numbered: {records: 4000, rate_per_s: 500, keys: 16, topic: INPUT-TOPIC}}
faults:
  - {skew: {hot_share: 0.5}, target: the workload, at_s: 1, for_s: 2}
checks: [exactly_once]
"""
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
    """The address of a Kafka that stays up, whose topics hold what others wrote."""
    out = str(tmp_path_factory.mktemp("up"))
    started = streamquake("up", "kafka-only", "--out", out)
    assert started.returncode == 0, started.stdout + started.stderr
    (run,) = (path.name for path in Path(out).iterdir() if path.name != "latest")
    try:
        status = json.loads(streamquake("status", "--run", run, "--json").stdout)
        (address,) = (p["address"] for node in status["nodes"] for p in node["ports"])
        create_topics(address, *TOPICS)
        others = Producer({"bootstrap.servers": address})
        others.produce("copies", '{"key": "k-00000", "seq": 0, "amount": 1}', "k-00000")
        assert others.flush(30) == 0
        yield str(address)
    finally:
        down = streamquake("down", "--run", run)
        assert down.returncode == 0, down.stdout + down.stderr


def create_topics(brokers: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    made = admin.create_topics([NewTopic(name, num_partitions=4) for name in names])
    assert [answer.result(30) for answer in made.values()] == [None] * len(names)


@contextmanager
def copier(
    brokers: str,
    topics: tuple[str, str] = TOPICS,
    *,
    loses: int = 0,
    written: Callable[[bytes], bytes] = bytes,
) -> Iterator[None]:
    """A job that Streamquake did not submit: it copies what comes from one topic to the other, but
    for each record of a multiple of `loses`, `written` as it pleases."""
    source, output = topics
    stop, reads = threading.Event(), threading.Event()

    def from_the_end(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # Found out now, not at the first poll after the first record was sent.
        for partition in partitions:
            partition.offset = consumer.get_watermark_offsets(partition, 30)[1]
        consumer.assign(partitions)
        reads.set()

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
                if value is not None and (not loses or taken % loses):
                    producer.produce(output, written(value), message.key())
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


def judged(
    brokers: str, folder: Path, topics: tuple[str, str] = TOPICS, reported: str = ""
) -> tuple[int, dict[str, Any], str]:
    """What a run says, with what is `told` of the output beside the rest."""
    experiment = folder / "theirs.yaml"
    text = EXPERIMENT.replace("INPUT-TOPIC", topics[0]).replace(
        "OUTPUT-TOPIC", topics[1] + reported
    )
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


def test_what_a_job_of_others_does_is_reconciled(brokers: str, tmp_path: Path) -> None:
    with copier(brokers):
        status, results, message = judged(brokers, tmp_path)
    assert (status, results["outcome"]) == (0, "held"), message
    (fault,) = results["faults"]
    assert fault["in_effect"]
    assert fault["healed"]


def test_what_it_loses_is_found(brokers: str, tmp_path: Path) -> None:
    with copier(brokers, loses=100):
        status, results, message = judged(brokers, tmp_path)
    assert (status, results["outcome"]) == (1, "violated"), message
    assert counts_of(results)["lost"] >= 30


def test_what_it_writes_in_avro_is_judged_too(brokers: str, tmp_path: Path) -> None:
    """One of its records is none."""
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

    with copier(brokers, topics, written=in_avro):
        status, results, message = judged(brokers, tmp_path, topics, recorded)

    assert (status, results["outcome"]) == (1, "violated"), message
    found = {name: count for name, count in counts_of(results).items() if "." not in name}
    wrong = ("lost", "duplicated", "phantom", "changed", "reordered", "malformed")
    assert {name: found[name] for name in wrong if found.get(name)} == {
        "lost": 1,
        "phantom": 1,
        "malformed": 1,
    }


def test_what_an_open_transaction_hides_is_no_loss_for_good(brokers: str, tmp_path: Path) -> None:
    """Its producer died, and it would stay open for longer than any command here may take: who
    waited for its end would fail. What it held is there for a reader of uncommitted records."""
    topics = ("asked", "hidden")
    create_topics(brokers, *topics)
    die_in_a_transaction(brokers, "hidden", "dies")

    with copier(brokers, topics):
        status, results, message = judged(brokers, tmp_path, topics)
    sides = (f"kafka://{brokers}/asked", f"kafka://{brokers}/hidden")
    requested = ("--key", "key", "--sequence", "seq", "--compare", "amount,checksum")
    while_open = reconciled(tmp_path, *sides, *requested)
    Producer({"bootstrap.servers": brokers, "transactional.id": "dies"}).init_transactions(30)
    once_ended = reconciled(tmp_path, *sides, *requested)
    by_any = reconciled(tmp_path, sides[0], f"{sides[1]}?isolation=read_uncommitted", *requested)

    assert (status, results["outcome"]) == (1, "violated"), message
    counts = counts_of(results)
    hidden = counts["invisible"]
    assert hidden > 0
    assert (counts["lost"], counts["held_back"]) == (hidden, hidden)
    assert while_open["counts"]["lost"] == hidden
    # The record that the transaction itself has written stands before them.
    assert f"{hidden + 1} offsets are held back by a transaction" in while_open["notes"][0]
    assert (once_ended["outcome"], once_ended["notes"]) == ("held", [])
    assert once_ended["counts"]["actual"] == counts["expected"]
    assert by_any["counts"] == {
        **once_ended["counts"],
        "actual": counts["expected"] + 1,
        "phantom": 1,
    }


def die_in_a_transaction(brokers: str, topic: str, name: str) -> None:
    """A transaction of one record that was written and never ended, since its producer was killed;
    it stands where the copies of the same key will come to stand."""
    with subprocess.Popen(
        [sys.executable, "-c", DIES, brokers, topic, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as producer:
        assert producer.stdout is not None
        assert producer.stdout.readline() == "open\n"
        producer.kill()


def test_avro_in_a_topic_is_read_by_the_schema_that_each_header_names(
    brokers: str, tmp_path: Path
) -> None:
    """Half of it is of an older schema; one record is missing, one changed, one without header."""
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

    document = reconciled(
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


def test_several_topics_are_one_side(brokers: str, tmp_path: Path) -> None:
    """Keys go from one topic to the other half way, which is no order; one record is in both, one
    in none, and in one topic one comes before its predecessor."""
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

    document = reconciled(
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


def reconciled(folder: Path, expected: str, actual: str, *asked: str) -> dict[str, Any]:
    """What `reconcile` writes of two sides."""
    found = folder / "found.json"
    done = streamquake(
        "reconcile", "--expected", expected, "--actual", actual, *asked, "--json", str(found)
    )
    document: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    assert (done.returncode == 0) == (document["outcome"] == "held"), done.stdout + done.stderr
    return document


def counts_of(results: dict[str, Any]) -> dict[str, int]:
    (found,) = (each for each in results["checks"] if each["check"] == "exactly_once")
    counts: dict[str, int] = found["counts"]
    return counts
