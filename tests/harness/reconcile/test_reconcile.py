"""Every class of anomaly is planted and must be found by its class and count, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from streamquake.harness.reconcile import reconcile as reconciling
from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.result import VIOLATIONS, ReconciliationResult, violated_classes
from streamquake.harness.reconcile.shape import Shape
from tests.harness.reconcile.model import OutputRecord, SentRecord, counts

SHAPE = Shape(
    identity=("key", "seq"),
    compare=("amount",),
    sequence="seq",
    key=("key",),
    status="status",
    lane=("partition",),
    position="offset",
)
KEYS, PER_KEY = 5, 40


def all_sent() -> list[SentRecord]:
    return [SentRecord(f"k{key}", seq, seq * 7) for seq in range(PER_KEY) for key in range(KEYS)]


def all_received() -> list[OutputRecord]:
    return [
        OutputRecord(record.key, record.seq, record.amount, int(record.key[1]) % 2, offset)
        for offset, record in enumerate(all_sent())
    ]


def reconcile_records(
    spark: SparkSession, sent: Sequence[SentRecord], received: Sequence[OutputRecord]
) -> ReconciliationResult:
    expected = spark.createDataFrame(sent, "key string, seq bigint, amount bigint, status string")
    actual = spark.createDataFrame(
        received, "key string, seq bigint, amount bigint, partition int, offset bigint"
    )
    return reconcile(expected, actual, SHAPE)


def assert_only(result: ReconciliationResult, **expected_counts: int) -> None:
    assert {name: result.counts[name] for name in VIOLATIONS} == {
        name: expected_counts.get(name, 0) for name in VIOLATIONS
    }
    assert {finding.what for finding in result.findings} == set(expected_counts)


def test_equal_sides_have_no_anomalies(spark: SparkSession) -> None:
    result = reconcile_records(spark, all_sent(), all_received())

    assert_only(result)
    assert result.counts["expected"] == result.counts["actual"] == KEYS * PER_KEY
    assert not violated_classes(result.counts)


def test_lost_records_are_found(spark: SparkSession) -> None:
    result = reconcile_records(spark, all_sent(), all_received()[3:])

    assert_only(result, lost=3)
    assert result.findings[0].detail["key"] == "k0"
    assert result.findings[0].detail["sent"] == [{"amount": 0}]
    assert result.findings[0].detail["seen"] == []


def test_every_copy_beyond_the_first_is_a_duplicate_and_not_reordered(spark: SparkSession) -> None:
    received = all_received()
    again = [
        record._replace(offset=1000 + change) for change, record in enumerate([received[7]] * 2)
    ]

    result = reconcile_records(spark, all_sent(), [*received, *again])

    assert_only(result, duplicated=2)
    assert result.findings[0].detail["extra_copies"] == 2
    assert "offset 1001" in result.findings[0].where


@pytest.mark.nightly
def test_the_second_copy_of_a_record_that_was_sent_twice_is_not_reordered(
    spark: SparkSession,
) -> None:
    sent, received = all_sent(), all_received()
    again = received[7]._replace(offset=1000)

    result = reconcile_records(spark, [*sent, sent[7]], [*received, again])

    assert_only(result)
    assert result.counts["actual"] == len(received) + 1


@pytest.mark.nightly
def test_reordered_records_are_counted_beside_records_that_were_sent_twice(
    spark: SparkSession,
) -> None:
    sent, received = all_sent(), all_received()
    late_copy = received[7]._replace(offset=1000)

    result = reconcile_records(
        spark,
        [*sent, sent[8]],
        [*received[:7], *received[8:], late_copy, received[8]._replace(offset=1001)],
    )

    assert_only(result, reordered=1)


def test_a_record_that_was_never_sent_is_a_phantom(spark: SparkSession) -> None:
    result = reconcile_records(
        spark, all_sent(), [OutputRecord("k9", 0, 1, 0, 999), *all_received()]
    )

    assert_only(result, phantom=1)
    assert result.findings[0].where == "partition 0, offset 999"


def test_a_failed_send_that_is_present_is_a_phantom(spark: SparkSession) -> None:
    sent = all_sent()
    sent[4] = sent[4]._replace(status="failed")

    result = reconcile_records(spark, sent, all_received())

    assert result.counts["phantom"] == 1
    assert result.findings[0].what == "phantom, though the send was refused"


def test_a_failed_send_that_is_absent_is_not_lost(spark: SparkSession) -> None:
    sent = all_sent()
    sent[4] = sent[4]._replace(status="failed")

    assert_only(reconcile_records(spark, sent, all_received()[:4] + all_received()[5:]))


@pytest.mark.parametrize("amount", [99, None])
def test_a_changed_value_is_found(spark: SparkSession, amount: int | None) -> None:
    received = all_received()
    received[11] = received[11]._replace(amount=amount)

    result = reconcile_records(spark, all_sent(), received)

    assert_only(result, changed=1)
    assert result.findings[0].detail["sent"] == [{"amount": 14}]
    assert result.findings[0].detail["seen"] == [{"amount": amount}]


@pytest.mark.nightly
def test_an_extra_copy_that_differs_is_both_duplicated_and_changed(spark: SparkSession) -> None:
    received = all_received()

    result = reconcile_records(
        spark, all_sent(), [*received, received[11]._replace(amount=-1, offset=1000)]
    )

    assert_only(result, duplicated=1, changed=1)


def test_a_record_after_a_later_one_of_its_key_is_reordered(spark: SparkSession) -> None:
    received = all_received()
    received[10], received[15] = (
        received[10]._replace(offset=received[15].offset),
        received[15]._replace(offset=received[10].offset),
    )

    result = reconcile_records(spark, all_sent(), received)

    assert_only(result, reordered=1)
    assert result.findings[0].detail == {"key": "k0", "seq": 2, "before": 3}


def test_records_of_different_keys_or_lanes_have_no_order(spark: SparkSession) -> None:
    """The second half of each key is in other partitions, at lower offsets."""
    received = [
        record._replace(partition=record.partition + 2, offset=record.offset - 500)
        if (record.seq or 0) >= PER_KEY // 2
        else record
        for record in all_received()
    ]

    assert_only(reconcile_records(spark, all_sent(), received))


def test_unknown_sends_are_never_a_violation(spark: SparkSession) -> None:
    sent = [
        record._replace(status="unknown") if change < 10 else record
        for change, record in enumerate(all_sent())
    ]

    result = reconcile_records(spark, sent, all_received()[4:])

    assert_only(result)
    assert result.counts["unknown_absent"] == 4
    assert result.counts["unknown_arrived"] == 6


@pytest.mark.nightly
def test_anomalies_in_most_records_are_counted_exactly(spark: SparkSession) -> None:
    """More than a fifth of the buckets differ, so all records are grouped."""
    sent = [SentRecord("k", seq, seq) for seq in range(3000)]
    received = [
        OutputRecord("k", seq, seq, 0, 2 * seq + copy) for seq in range(1, 3000) for copy in (0, 1)
    ]

    assert_only(reconcile_records(spark, sent, received), lost=1, duplicated=2999)


def test_identity_is_exact(spark: SparkSession) -> None:
    """Texts that differ in blanks, in case or in a combining accent are different."""
    sent = [SentRecord("k", 0, 1), SentRecord("é", 0, 1), SentRecord("x ", 0, 1)]
    received = [
        OutputRecord("K", 0, 1, 0, 0),
        OutputRecord("e\u0301", 0, 1, 0, 1),
        OutputRecord("x", 0, 1, 0, 2),
    ]

    assert_only(reconcile_records(spark, sent, received), lost=3, phantom=3)


def test_without_a_sequence_the_order_is_not_judged(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1)], "key string, value int")

    result = reconcile(frame, frame, Shape(identity=("key",), compare=("value",)))

    assert result.counts["reordered"] is None
    assert not violated_classes(result.counts)


@pytest.mark.nightly
def test_two_sends_of_one_identity_may_have_two_copies(spark: SparkSession) -> None:
    shape = Shape(identity=("key",), compare=("value",))
    sent = spark.createDataFrame([("a", 1), ("a", 2), ("b", 1), ("b", 2)], "key string, value int")
    received = spark.createDataFrame(
        [("a", 2), ("a", 1), ("b", 1), ("b", 1)], "key string, value int"
    )

    class_counts = reconcile(sent, received, shape).counts

    assert (class_counts["lost"], class_counts["duplicated"], class_counts["changed"]) == (0, 0, 1)


def test_without_an_acknowledged_record_nothing_is_proven(spark: SparkSession) -> None:
    assert reconcile_records(spark, [], []).proves_nothing
    unknown = [SentRecord("a", seq, 10, "unknown") for seq in (1, 2)]
    arrived, phantom = OutputRecord("a", 1, 10, 0, 0), OutputRecord("b", 1, 10, 0, 0)
    assert reconcile_records(spark, unknown, [arrived]).proves_nothing
    assert not reconcile_records(spark, unknown, [phantom]).proves_nothing
    assert not reconcile_records(spark, [SentRecord("a", 1, 10)], [arrived]).proves_nothing


records = st.tuples(st.sampled_from("abc"), st.integers(0, 5))
anomalies = st.lists(
    st.tuples(
        st.sampled_from(["drop", "copy", "change", "swap", "invent", "unknown", "refuse"]),
        st.integers(0, 10_000),
    ),
    max_size=6,
)


cases = st.tuples(st.sets(records, min_size=1), anomalies)


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(cases, min_size=20, max_size=60))
def test_it_agrees_with_a_model_in_plain_python(
    spark: SparkSession, drawn: list[tuple[set[tuple[str, int]], list[tuple[str, int]]]]
) -> None:
    """Many cases share one comparison, each with its number in the key, because a comparison takes
    seconds and a case takes almost no time. Compared by dirty buckets, and all records at once."""
    all_sent: list[SentRecord] = []
    all_received: list[OutputRecord] = []
    for number, (names, planted) in enumerate(drawn):
        sent, received = _case(names, planted)
        all_sent += [record._replace(key=f"{number} {record.key}") for record in sent]
        all_received += [record._replace(key=f"{number} {record.key}") for record in received]
    expected = counts(all_sent, all_received)
    share = reconciling.DIRTY_SHARE
    try:
        for reconciling.DIRTY_SHARE in (0.0, 1.0):
            result = reconcile_records(spark, all_sent, all_received)
            assert {name: result.counts[name] for name in expected} == expected
    finally:
        reconciling.DIRTY_SHARE = share


def _case(
    names: set[tuple[str, int]], planted: list[tuple[str, int]]
) -> tuple[list[SentRecord], list[OutputRecord]]:
    sent = [SentRecord(key, seq, seq) for key, seq in sorted(names, key=lambda name: name[1])]
    received = [
        OutputRecord(record.key, record.seq, record.amount, ord(record.key) % 2, offset)
        for offset, record in enumerate(sent)
    ]
    for kind, at in planted:
        _plant(kind, at, sent, received)
    return sent, received


def _plant(kind: str, at: int, sent: list[SentRecord], received: list[OutputRecord]) -> None:
    actual_index, sent_index = at % max(len(received), 1), at % len(sent)
    if kind == "unknown":
        sent[sent_index] = sent[sent_index]._replace(status="unknown")
    elif kind == "refuse":
        sent[sent_index] = sent[sent_index]._replace(status="failed")
    elif kind == "invent":
        received.append(OutputRecord("z", at, 0, 0, 10_000 + len(received)))
    elif not received:
        return
    elif kind == "drop":
        del received[actual_index]
    elif kind == "copy":
        received.append(received[actual_index]._replace(offset=10_000 + len(received)))
    elif kind == "change":
        received[actual_index] = received[actual_index]._replace(amount=-at - 1)
    elif kind == "swap":
        other = (at // 7) % len(received)
        received[actual_index], received[other] = (
            received[actual_index]._replace(offset=received[other].offset),
            received[other]._replace(offset=received[actual_index].offset),
        )
