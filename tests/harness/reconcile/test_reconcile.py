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
from tests.harness.reconcile.model import BatchWindow, Sent, counts

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


def all_sent() -> list[Sent]:
    return [Sent(f"k{key}", seq, seq * 7) for seq in range(PER_KEY) for key in range(KEYS)]


def all_seen() -> list[BatchWindow]:
    return [
        BatchWindow(record.key, record.seq, record.amount, int(record.key[1]) % 2, offset)
        for offset, record in enumerate(all_sent())
    ]


def judged(
    spark: SparkSession, sent: Sequence[Sent], seen: Sequence[BatchWindow]
) -> ReconciliationResult:
    expected = spark.createDataFrame(sent, "key string, seq bigint, amount bigint, status string")
    actual = spark.createDataFrame(
        seen, "key string, seq bigint, amount bigint, partition int, offset bigint"
    )
    return reconcile(expected, actual, SHAPE)


def assert_only(result: ReconciliationResult, **found: int) -> None:
    assert {name: result.counts[name] for name in VIOLATIONS} == {
        name: found.get(name, 0) for name in VIOLATIONS
    }
    assert {finding.what for finding in result.findings} == set(found)


def test_nothing_is_found_in_what_is_the_same(spark: SparkSession) -> None:
    result = judged(spark, all_sent(), all_seen())

    assert_only(result)
    assert result.counts["expected"] == result.counts["actual"] == KEYS * PER_KEY
    assert not violated_classes(result.counts)


def test_lost_records_are_found(spark: SparkSession) -> None:
    result = judged(spark, all_sent(), all_seen()[3:])

    assert_only(result, lost=3)
    assert result.findings[0].detail["key"] == "k0"
    assert result.findings[0].detail["sent"] == [{"amount": 0}]
    assert result.findings[0].detail["seen"] == []


def test_every_copy_beyond_the_first_is_a_duplicate_and_no_step_back(spark: SparkSession) -> None:
    seen = all_seen()
    again = [record._replace(offset=1000 + change) for change, record in enumerate([seen[7]] * 2)]

    result = judged(spark, all_sent(), [*seen, *again])

    assert_only(result, duplicated=2)
    assert result.findings[0].detail["extra_copies"] == 2
    assert "offset 1001" in result.findings[0].where


def test_what_was_sent_twice_is_no_step_back_when_it_comes_again(spark: SparkSession) -> None:
    sent, seen = all_sent(), all_seen()
    again = seen[7]._replace(offset=1000)

    result = judged(spark, [*sent, sent[7]], [*seen, again])

    assert_only(result)
    assert result.counts["actual"] == len(seen) + 1


def test_steps_back_count_among_records_sent_twice(spark: SparkSession) -> None:
    sent, seen = all_sent(), all_seen()
    late = seen[7]._replace(offset=1000)

    result = judged(
        spark, [*sent, sent[8]], [*seen[:7], *seen[8:], late, seen[8]._replace(offset=1001)]
    )

    assert_only(result, reordered=1)


def test_a_record_that_was_never_sent_is_a_phantom(spark: SparkSession) -> None:
    result = judged(spark, all_sent(), [BatchWindow("k9", 0, 1, 0, 999), *all_seen()])

    assert_only(result, phantom=1)
    assert result.findings[0].where == "partition 0, offset 999"


def test_a_failed_send_that_is_present_is_a_phantom(spark: SparkSession) -> None:
    sent = all_sent()
    sent[4] = sent[4]._replace(status="failed")

    result = judged(spark, sent, all_seen())

    assert result.counts["phantom"] == 1
    assert result.findings[0].what == "phantom, though the send was refused"


def test_a_failed_send_that_is_absent_is_not_lost(spark: SparkSession) -> None:
    sent = all_sent()
    sent[4] = sent[4]._replace(status="failed")

    assert_only(judged(spark, sent, all_seen()[:4] + all_seen()[5:]))


@pytest.mark.parametrize("amount", [99, None])
def test_a_changed_value_is_found(spark: SparkSession, amount: int | None) -> None:
    seen = all_seen()
    seen[11] = seen[11]._replace(amount=amount)

    result = judged(spark, all_sent(), seen)

    assert_only(result, changed=1)
    assert result.findings[0].detail["sent"] == [{"amount": 14}]
    assert result.findings[0].detail["seen"] == [{"amount": amount}]


def test_an_extra_copy_that_differs_is_both_duplicated_and_changed(spark: SparkSession) -> None:
    seen = all_seen()

    result = judged(spark, all_sent(), [*seen, seen[11]._replace(amount=-1, offset=1000)])

    assert_only(result, duplicated=1, changed=1)


def test_a_record_after_a_later_one_of_its_key_is_reordered(spark: SparkSession) -> None:
    seen = all_seen()
    seen[10], seen[15] = (
        seen[10]._replace(offset=seen[15].offset),
        seen[15]._replace(offset=seen[10].offset),
    )

    result = judged(spark, all_sent(), seen)

    assert_only(result, reordered=1)
    assert result.findings[0].detail == {"key": "k0", "seq": 2, "before": 3}


def test_keys_and_lanes_have_no_order_among_them(spark: SparkSession) -> None:
    """The second half of each key stands in other partitions, at lower offsets."""
    seen = [
        record._replace(partition=record.partition + 2, offset=record.offset - 500)
        if (record.seq or 0) >= PER_KEY // 2
        else record
        for record in all_seen()
    ]

    assert_only(judged(spark, all_sent(), seen))


def test_unknown_sends_are_never_a_violation(spark: SparkSession) -> None:
    sent = [
        record._replace(status="unknown") if change < 10 else record
        for change, record in enumerate(all_sent())
    ]

    result = judged(spark, sent, all_seen()[4:])

    assert_only(result)
    assert result.counts["unknown_absent"] == 4
    assert result.counts["unknown_arrived"] == 6


def test_a_broken_whole_is_counted_as_exactly_as_one_record(spark: SparkSession) -> None:
    """More than a fifth of the buckets differ, so everything is grouped."""
    sent = [Sent("k", seq, seq) for seq in range(3000)]
    seen = [
        BatchWindow("k", seq, seq, 0, 2 * seq + copy) for seq in range(1, 3000) for copy in (0, 1)
    ]

    assert_only(judged(spark, sent, seen), lost=1, duplicated=2999)


def test_identity_is_exact(spark: SparkSession) -> None:
    """Neither blanks nor letter case nor a combining accent are taken for the same."""
    sent = [Sent("k", 0, 1), Sent("é", 0, 1), Sent("x ", 0, 1)]
    seen = [
        BatchWindow("K", 0, 1, 0, 0),
        BatchWindow("e\u0301", 0, 1, 0, 1),
        BatchWindow("x", 0, 1, 0, 2),
    ]

    assert_only(judged(spark, sent, seen), lost=3, phantom=3)


def test_without_a_sequence_the_order_is_not_judged(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1)], "key string, value int")

    result = reconcile(frame, frame, Shape(identity=("key",), compare=("value",)))

    assert result.counts["reordered"] is None
    assert not violated_classes(result.counts)


def test_two_sends_of_one_identity_may_have_two_copies(spark: SparkSession) -> None:
    shape = Shape(identity=("key",), compare=("value",))
    sent = spark.createDataFrame([("a", 1), ("a", 2), ("b", 1), ("b", 2)], "key string, value int")
    seen = spark.createDataFrame([("a", 2), ("a", 1), ("b", 1), ("b", 1)], "key string, value int")

    counts_ = reconcile(sent, seen, shape).counts

    assert (counts_["lost"], counts_["duplicated"], counts_["changed"]) == (0, 0, 1)


def test_two_empty_sides_prove_nothing(spark: SparkSession) -> None:
    assert judged(spark, [], []).empty


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
    """Many cases in one comparison, told apart by their number in the key: a comparison costs
    seconds and a case nothing. Bucket by bucket, and all at once."""
    all_sent: list[Sent] = []
    all_seen: list[BatchWindow] = []
    for number, (names, planted) in enumerate(drawn):
        sent, seen = _case(names, planted)
        all_sent += [each._replace(key=f"{number} {each.key}") for each in sent]
        all_seen += [each._replace(key=f"{number} {each.key}") for each in seen]
    expected = counts(all_sent, all_seen)
    share = reconciling.DIRTY_SHARE
    try:
        for reconciling.DIRTY_SHARE in (0.0, 1.0):
            result = judged(spark, all_sent, all_seen)
            assert {name: result.counts[name] for name in expected} == expected
    finally:
        reconciling.DIRTY_SHARE = share


def _case(
    names: set[tuple[str, int]], planted: list[tuple[str, int]]
) -> tuple[list[Sent], list[BatchWindow]]:
    sent = [Sent(key, seq, seq) for key, seq in sorted(names, key=lambda name: name[1])]
    seen = [
        BatchWindow(record.key, record.seq, record.amount, ord(record.key) % 2, offset)
        for offset, record in enumerate(sent)
    ]
    for kind, at in planted:
        _plant(kind, at, sent, seen)
    return sent, seen


def _plant(kind: str, at: int, sent: list[Sent], seen: list[BatchWindow]) -> None:
    here, there = at % max(len(seen), 1), at % len(sent)
    if kind == "unknown":
        sent[there] = sent[there]._replace(status="unknown")
    elif kind == "refuse":
        sent[there] = sent[there]._replace(status="failed")
    elif kind == "invent":
        seen.append(BatchWindow("z", at, 0, 0, 10_000 + len(seen)))
    elif not seen:
        return
    elif kind == "drop":
        del seen[here]
    elif kind == "copy":
        seen.append(seen[here]._replace(offset=10_000 + len(seen)))
    elif kind == "change":
        seen[here] = seen[here]._replace(amount=-at - 1)
    elif kind == "swap":
        other = (at // 7) % len(seen)
        seen[here], seen[other] = (
            seen[here]._replace(offset=seen[other].offset),
            seen[other]._replace(offset=seen[here].offset),
        )
