"""A topic as a side: which offsets are read from the brokers, and how keys, values and offsets are
compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.harness.reconcile.reading import stored_topic
from streamquake.harness.reconcile.reading.format import formats
from streamquake.harness.reconcile.reading.source import source_of
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.sources.kafka import Topic, topic_of
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile import whole_topic
from tests.harness.reconcile.data_sets import comparison_of
from tests.harness.reconcile.record_tables import record_table

COLUMNS = "partition int, offset bigint, timestamp_ms bigint, key string, value string"
Rows = Sequence[tuple[int, int, int, str, str | None]]
RequestedRead = tuple[str, str, dict[int, int], bool]


def stub_brokers(
    patch: pytest.MonkeyPatch,
    written: Mapping[str, Rows],
    *,
    stable: dict[int, int],
    ends: dict[int, int],
) -> list[RequestedRead]:
    """Stub topics without a broker, all with the same ends; returns the reads that Spark is
    requested to do."""
    requested: list[RequestedRead] = []

    def records(
        session: SparkSession,
        brokers: KafkaConnection,
        topic: str,
        ends: Mapping[int, int],
        *,
        committed: bool,
    ) -> DataFrame:
        requested.append((brokers.servers, topic, dict(ends), committed))
        rows = [(topic, *row) for row in written[topic]]
        return session.createDataFrame(rows, f"topic string, {COLUMNS}")

    patch.setattr("streamquake.harness.reconcile.sources.kafka.records", records)
    patch.setattr(kafka_admin, "topics_at", lambda brokers: tuple(written))
    patch.setattr(
        kafka_admin, "ends_at", lambda brokers, topic, *, committed: stable if committed else ends
    )
    return requested


@pytest.mark.parametrize(
    ("uri", "brokers"),
    [
        ("kafka://b/t", "b:9092"),
        ("kafka://b:9094/t/", "b:9094"),
        ("kafka://b,c:9095/t", "b:9092,c:9095"),
    ],
)
def test_brokers_and_topic_of_a_uri(uri: str, brokers: str) -> None:
    assert topic_of(uri) == Topic(
        uri=uri, brokers=KafkaConnection(brokers), name="t", committed_only=True
    )


@pytest.mark.parametrize(
    ("level", "committed"), [("read_committed", True), ("read_uncommitted", False)]
)
def test_a_uri_sets_the_isolation_level(level: str, committed: bool) -> None:
    assert topic_of(f"kafka://b/t?isolation={level}").committed_only is committed


@pytest.mark.parametrize("end", ["?isolation=dirty", "?isolation", "?offset=3", "#0"])
def test_other_parameters_after_a_topic_are_rejected(end: str) -> None:
    with pytest.raises(BadInput, match=r"only \?isolation=read_committed\|read_uncommitted is"):
        topic_of(f"kafka://b/t{end}")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("kafka://u:secret@h:1/t", "an address takes no login; give it as `properties`"),
        ("kafka://u:a/secret@h:1/t", "expected kafka://broker"),
        ("kafka://[u:secret@h:1/t", "it is no URI"),
        ("kafka:/u:secret@h:1/t", "no such file"),
    ],
)
def test_a_login_in_an_address_is_rejected_and_not_shown(uri: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as error:
        source_of([uri], "--actual").inspect()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("uri", ["kafka://b", "kafka:///t", "kafka://b/t/u", "kafka://b,/t"])
def test_a_uri_without_brokers_or_without_exactly_one_topic_is_rejected(uri: str) -> None:
    with pytest.raises(BadInput, match="expected kafka://broker"):
        topic_of(uri)


def test_topics_of_one_side_have_one_cluster_and_different_names() -> None:
    with pytest.raises(
        BadInput, match="kafka://c/u: the topics of one side must be of one cluster"
    ):
        source_of(["kafka://b/t", "kafka://c/u"], "--actual")
    with pytest.raises(BadInput, match="the side has the topic t already"):
        source_of(["kafka://b/t", "kafka://b:9092/t?isolation=read_uncommitted"], "--actual")
    with pytest.raises(BadInput, match="one kind of source"):
        source_of(["kafka://b/t", "file"], "--actual")


def test_an_unknown_topic_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_admin, "topics_at", lambda brokers: ("orders",))

    with pytest.raises(BadInput, match='"order"; did you mean "orders"'):
        source_of(["kafka://b/order"], "--actual").inspect()


def test_a_topic_is_read_to_its_stable_end_and_ordered_by_its_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key x is in two partitions, between which there is no order; y is out of order in one."""
    rows = [
        (0, 0, 10, "x", '{"n": 3}'),
        (1, 0, 11, "x", '{"n": 1}'),
        (1, 1, 12, "x", '{"n": 2}'),
        (0, 1, 13, "y", '{"n": 2}'),
        (0, 2, 14, "y", '{"n": 1}'),
        (0, 3, 15, "z", None),
        (0, 4, 16, "z", "broken"),
    ]
    requested = stub_brokers(monkeypatch, {"t": rows}, stable={0: 5, 1: 2}, ends={0: 8, 1: 2})
    sent = [("x", 1), ("x", 2), ("x", 3), ("y", 1), ("y", 2)]
    lines = [f'{{"id": "{key}", "n": {n}}}\n' for key, n in sent]
    (tmp_path / "e.json").write_text("".join([*lines, '{"id": "z"}\n']))

    result = comparison_of(
        spark, tmp_path / "e.json", "kafka://b/t", "id", sequence="n", actual_key="_key"
    )

    assert requested == [("b:9092", "t", {0: 5, 1: 2}, True)]
    counts = result.counts
    assert (counts["lost"], counts["phantom"], counts["malformed"]) == (0, 1, 1)
    assert counts["reordered"] == 1
    assert result.outcome == Outcome.VIOLATED
    places = {finding.what: finding.where for finding in result.findings}
    assert places["reordered"] == "key y, partition 0, offset 2, timestamp_ms 14"
    assert "3 offsets are held back by a transaction" in result.notes[0]


@pytest.mark.nightly
def test_several_topics_are_one_side_without_an_order_between_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key x is out of order between topics, which is no anomaly, and y within one, which is one.
    One record of y is not in the home partition of its key. The second topic is read with its
    uncommitted records."""
    written = {
        "t": [(0, 0, 10, "x", '{"n": 3}'), (1, 0, 11, "y", '{"n": 1}')],
        "u": [
            (0, 0, 12, "x", '{"n": 1}'),
            (1, 0, 13, "y", '{"n": 3}'),
            (1, 1, 14, "y", '{"n": 2}'),
            (0, 1, 15, "y", '{"n": 4}'),
        ],
    }
    requested = stub_brokers(monkeypatch, written, stable={0: 2}, ends={0: 3})
    sent = [("x", 1), ("x", 3), ("y", 1), ("y", 2), ("y", 3), ("y", 4), ("y", 5)]
    lines = [f'{{"id": "{key}", "n": {n}}}\n' for key, n in sent]
    (tmp_path / "e.json").write_text("".join(lines))

    result = comparison_of(
        spark,
        tmp_path / "e.json",
        ("kafka://b/t", "kafka://b/u?isolation=read_uncommitted"),
        "id",
        sequence="n",
        actual_key="_key",
        also=("wrong_partition",),
    )

    assert requested == [("b:9092", "t", {0: 2}, True), ("b:9092", "u", {0: 3}, False)]
    counts = {name: n for name, n in result.counts.items() if n}
    assert counts == {
        "expected": 7,
        "actual": 6,
        "lost": 1,
        "reordered": 1,
        "wrong_partition": 1,
    }
    places = {finding.what: finding.where for finding in result.findings}
    assert places["reordered"] == "topic u, key y, partition 1, offset 1, timestamp_ms 14"
    assert places["wrong_partition"] == "topic u, key y, partition 0, offset 1, timestamp_ms 15"
    assert [note for note in result.notes if "transaction" in note] == [
        "kafka://b/t: 1 offsets are held back by a transaction that is still open; their "
        "records may become readable later"
    ]


def test_a_stable_end_before_the_beginning_is_the_beginning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier transaction is open in partition 0, so `read_committed` consumers read none of its
    two records, and all records of partition 1."""
    written = [(0, 7, "hidden"), (0, 8, "hidden"), (1, 3, "seen")]

    def records(
        brokers: str,
        topic: str,
        ends: Mapping[int, int],
        *,
        committed: bool,
        starts: Mapping[int, int],
    ) -> Iterator[pa.Table]:
        assert all(starts[place] <= end for place, end in ends.items())
        rows = [
            ("t", place, at, 0, None, value, committed, True)
            for place, at, value in written
            if at < ends[place]
        ]
        yield record_table(rows)

    monkeypatch.setattr(stored_topic, "topic_records", records)
    into = StoredOutput(path=tmp_path / "t")

    whole_topic.read_topic(
        spark,
        "b:9092",
        "t",
        stable_ends={0: 5, 1: 4},
        ends={0: 9, 1: 4},
        starts={0: 7, 1: 3},
        into=into,
    )

    facts = into.facts()
    assert (facts["records"], facts["uncommitted"]) == (1, 2)
    assert facts["stable_ends"] == {"0": 7, "1": 4}


def test_values_of_another_format_are_stored_as_json(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A malformed value is stored as text that is no JSON, and a missing one stays null."""
    values = (b"seven", b"\xff", None)
    rows = [("t", 0, at, 0, f"k{at}", value, True, True) for at, value in enumerate(values)]
    monkeypatch.setattr(
        stored_topic, "topic_records", lambda *_, **named: iter([record_table(rows)])
    )
    into = StoredOutput(path=tmp_path / "t")

    whole_topic.read_topic(
        spark,
        "b:9092",
        "t",
        stable_ends={0: 3},
        ends={0: 3},
        into=into,
        declared_format=formats["text"](),
    )

    stored = into.frame(spark).orderBy("offset").collect()
    assert [(row.key, row.value, row.record) for row in stored] == [
        ("k0", '{"value":"seven"}', Row(value="seven")),
        ("k1", "FF", None),
        ("k2", None, None),
    ]
