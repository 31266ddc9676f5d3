"""A topic as a side: what is asked of the brokers, and what becomes of keys, values and offsets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamquake.cluster.engines import kafka_admin
from streamquake.harness.reconcile import kafka
from streamquake.harness.reconcile.source import source_of
from streamquake.harness.reconcile.sources.kafka import address
from streamquake.harness.reconcile.stored import Stored
from streamquake.reports.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import compared

COLUMNS = "partition int, offset bigint, timestamp_ms bigint, key string, value string"


@pytest.mark.parametrize(
    ("uri", "brokers"),
    [
        ("kafka://b/t", "b:9092"),
        ("kafka://b:9094/t/", "b:9094"),
        ("kafka://b,c:9095/t", "b:9092,c:9095"),
    ],
)
def test_brokers_and_topic_of_a_uri(uri: str, brokers: str) -> None:
    assert address(uri) == (brokers, "t")


@pytest.mark.parametrize("uri", ["kafka://b", "kafka:///t", "kafka://b/t/u", "kafka://b,/t"])
def test_a_uri_without_brokers_or_with_no_one_topic_is_refused(uri: str) -> None:
    with pytest.raises(BadInput, match="expected kafka://broker"):
        address(uri)


def test_one_side_is_one_topic() -> None:
    with pytest.raises(BadInput, match="--actual: expected one kafka:// URI, got 2"):
        source_of(["kafka://b/t", "kafka://b/u"], "--actual")
    with pytest.raises(BadInput, match="one kind of source"):
        source_of(["kafka://b/t", "file"], "--actual")


def test_an_unknown_topic_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_admin, "topics_at", lambda brokers: ("orders",))

    with pytest.raises(BadInput, match='"order"; did you mean "orders"'):
        source_of(["kafka://b/order"], "--actual").look()


def test_a_topic_is_read_to_its_stable_end_and_ordered_by_its_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key x stands in two partitions, between which there is no order; y goes back in one."""
    rows = [
        (0, 0, 10, "x", '{"n": 3}'), (1, 0, 11, "x", '{"n": 1}'), (1, 1, 12, "x", '{"n": 2}'),
        (0, 1, 13, "y", '{"n": 2}'), (0, 2, 14, "y", '{"n": 1}'), (0, 3, 15, "z", None),
        (0, 4, 16, "z", "broken"),
    ]  # fmt: skip
    asked: list[tuple[object, ...]] = []

    def records(
        session: SparkSession, brokers: str, topic: str, ends: Mapping[int, int], *, committed: bool
    ) -> DataFrame:
        asked.append((brokers, topic, dict(ends), committed))
        return session.createDataFrame(rows, COLUMNS)

    monkeypatch.setattr(kafka, "records", records)
    monkeypatch.setattr(kafka_admin, "topics_at", lambda brokers: ("t",))
    monkeypatch.setattr(
        kafka_admin,
        "ends_at",
        lambda brokers, topic, *, committed: {0: 5 if committed else 8, 1: 2},
    )
    sent = [("x", 1), ("x", 2), ("x", 3), ("y", 1), ("y", 2)]
    lines = [f'{{"id": "{key}", "n": {n}}}\n' for key, n in sent]
    (tmp_path / "e.json").write_text("".join([*lines, '{"id": "z"}\n']))

    result = compared(
        spark, tmp_path / "e.json", "kafka://b/t", "id", sequence="n", actual_key="_key"
    )

    assert asked == [("b:9092", "t", {0: 5, 1: 2}, True)]
    counts = result.counts
    assert (counts["lost"], counts["phantom"], counts["malformed"]) == (0, 1, 1)
    assert counts["reordered"] == 1
    assert result.outcome == Outcome.VIOLATED
    places = {each.what: each.where for each in result.findings}
    assert places["reordered"] == "key y, partition 0, offset 2, timestamp_ms 14"
    assert "3 offsets stand behind a transaction" in result.notes[0]


def test_a_stable_end_before_the_beginning_is_the_beginning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction of before is open in partition 0: of two records behind its end none is seen by
    readers of committed records, and of partition 1 all are."""
    written = [(0, 7, "hidden"), (0, 8, "hidden"), (1, 3, "seen")]

    def records(
        session: SparkSession, brokers: str, topic: str, ends: Mapping[int, int], *,
        committed: bool, starts: Mapping[int, int],
    ) -> DataFrame:  # fmt: skip
        assert all(starts[place] <= end for place, end in ends.items())
        rows = [(*row, committed, True) for row in written if row[1] < ends[row[0]]]
        columns = "partition int, offset bigint, value string, committed boolean, appended boolean"
        return session.createDataFrame(rows, columns)

    monkeypatch.setattr(kafka, "records", records)
    into = Stored(path=tmp_path / "t")

    kafka.read_topic(
        spark, "b:9092", "t", stable_ends={0: 5, 1: 4}, ends={0: 9, 1: 4}, starts={0: 7, 1: 3},
        into=into,
    )  # fmt: skip

    facts = into.facts()
    assert (facts["records"], facts["uncommitted"]) == (1, 2)
    assert facts["stable_ends"] == {"0": 7, "1": 4}
