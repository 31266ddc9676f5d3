"""The self-test can fail: a judge that is broken in one place makes it come out violated.

Some judges here are broken from outside, by what they say; others are the real one with one thought
taken out of it, which is what a mistake would look like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile import digest, drill, order, reconcile, sides
from streamquake.harness.reconcile.anomalies import gap, wrong_partition
from streamquake.harness.reconcile.result import VIOLATIONS, Reconciled
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.selftest.cells import chosen
from streamquake.harness.selftest.conduct import Judge, Plan, conduct
from streamquake.harness.selftest.result import SelfTest
from streamquake.reports.outcome import Outcome

RECORDS = 800
ALL = "all_at_once/one/few_keys"
LOST = "lost/one/few_keys"
CLEAN = "clean/none/few_keys"
UNORDERED = "clean/none/dense_ids"
Break = Callable[[pytest.MonkeyPatch], None]


def judged(spark: SparkSession, *only: str, judge: Judge | None = None) -> SelfTest:
    cells = tuple(chosen(only, RECORDS))
    plan = Plan(seed=2, records=RECORDS, cells=cells, again="streamquake selftest")
    return conduct(plan, spark, tell=lambda result: None, judge=judge)


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> dict[str, Reconciled]:
    """What the real judge says of some cells; each is judged once, for all tests."""
    found: dict[str, Reconciled] = {}

    def judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> Reconciled:
        found[name] = reconcile.reconcile(expected, actual, shape)
        return found[name]

    for name in (ALL, LOST, CLEAN, UNORDERED):
        assert judged(spark, name, judge=judge).outcome is Outcome.HELD
    return found


def saying(answer: Reconciled, **counts: int | None) -> Judge:
    """A judge that says the same whatever it is given, with other counts."""
    said = replace(answer, counts={**answer.counts, **counts})
    return lambda expected, actual, shape: said


@pytest.mark.parametrize("name", [*VIOLATIONS, "unknown_absent"])
def test_a_judge_that_ignores_a_class_is_found_out(
    spark: SparkSession, answers: dict[str, Reconciled], name: str
) -> None:
    known = tuple(f for f in answers[ALL].findings if not f.what.startswith(name))
    ignorant = saying(replace(answers[ALL], findings=known), **{name: 0})

    results = judged(spark, ALL, judge=ignorant)

    assert results.outcome is Outcome.VIOLATED
    (cell,) = results.failed
    assert cell.differences[0] == f"{name}: planted {cell.planted[name]}, reported 0"
    assert cell.again == f"streamquake selftest --seed 2 --records 800 --only {ALL}"


@pytest.mark.parametrize(
    ("cell", "counts", "difference"),
    [
        (CLEAN, {"lost": 1}, "lost: planted 0, reported 1"),
        (CLEAN, {"late": 4, "early": None}, "late: planted 0, reported 4"),
        (CLEAN, {"lost": None}, "lost: planted 0, reported not judged"),
        (UNORDERED, {"reordered": 0}, "reordered: planted not judged, reported 0"),
    ],
)
def test_a_judge_that_says_more_or_less_than_it_knows_is_found_out(
    spark: SparkSession, answers: dict[str, Reconciled], cell: str, counts: dict[str, int | None],
    difference: str,
) -> None:  # fmt: skip
    results = judged(spark, cell, judge=saying(answers[cell], **counts))

    assert results.outcome is Outcome.VIOLATED
    assert results.cells[0].differences == (difference,)


def test_right_numbers_of_wrong_records_are_found_out(
    spark: SparkSession, answers: dict[str, Reconciled]
) -> None:
    (finding,) = answers[LOST].findings
    wrong = replace(finding, detail={**finding.detail, "seq": 10_000})

    results = judged(spark, LOST, judge=saying(replace(answers[LOST], findings=(wrong,))))

    assert results.outcome is Outcome.VIOLATED
    assert "an example of lost names a record not planted" in results.cells[0].differences[0]


def test_missing_examples_are_found_out(
    spark: SparkSession, answers: dict[str, Reconciled]
) -> None:
    results = judged(spark, LOST, judge=saying(replace(answers[LOST], findings=())))

    assert results.cells[0].differences == ("no example of lost",)


def test_a_judge_that_breaks_leaves_its_cell_undecided(spark: SparkSession) -> None:
    def broken(expected: DataFrame, actual: DataFrame, shape: Shape) -> Reconciled:
        raise RuntimeError("no space left")

    results = judged(spark, LOST, CLEAN, judge=broken)

    assert results.outcome is Outcome.UNDECIDED
    assert [cell.error for cell in results.cells] == ["RuntimeError: no space left"] * 2


def _forgets_phantoms_in_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(order, "_without", lambda records, phantoms, shape: records)


def _keeps_copies_in_the_order(patch: pytest.MonkeyPatch) -> None:
    real = order.without_extras

    def keeping(actual: DataFrame, shape: Shape, **options: Any) -> DataFrame:
        return real(actual, shape, **{**options, "duplicates": False})

    patch.setattr(reconcile, "without_extras", keeping)


def _takes_null_for_nothing(patch: pytest.MonkeyPatch) -> None:
    def without_marks(columns: Sequence[str]) -> Column:
        return F.xxhash64(*(F.col(name) for name in columns))

    patch.setattr(sides, "hash_of", without_marks)


def _compares_nothing(patch: pytest.MonkeyPatch) -> None:
    def identity_only(columns: Sequence[str]) -> Column:
        return F.xxhash64(*(F.col(name) for name in columns if name in ("key", "seq")))

    patch.setattr(sides, "hash_of", identity_only)


def _knows_one_send_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drill, "_CHANGED", "IF(ok + unknown > 0 AND alien > 0, 1, 0)")


def _looks_at_no_bucket(patch: pytest.MonkeyPatch) -> None:
    real = digest.digest_of
    patch.setattr(reconcile, "digest_of", lambda rows: replace(real(rows), dirty=()))


def _takes_refused_for_unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sides, "UNKNOWN", "failed")


def _takes_even_numbers_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gap, "_whole", lambda sequence, kind: sequence * 2)


def _takes_the_first_partition_for_everyones_home(patch: pytest.MonkeyPatch) -> None:
    real = wrong_partition._homes

    def first(side: DataFrame, key: Sequence[str], partition: str) -> DataFrame:
        return real(side, key, partition).withColumn(wrong_partition.HOME, F.lit(0))

    patch.setattr(wrong_partition, "_homes", first)


SABOTAGE: Sequence[tuple[Break, str]] = (
    (_forgets_phantoms_in_the_order, "phantom_unsent/block/hash_ids"),
    (_keeps_copies_in_the_order, "duplicated_once/block/few_keys"),
    (_takes_null_for_nothing, "changed_value/one/nulls"),
    (_compares_nothing, "changed_checksum/one/few_keys"),
    (_knows_one_send_only, "changed_value/one/resent"),
    (_looks_at_no_bucket, "lost/first/many_keys"),
    (_takes_refused_for_unknown, "phantom_refused/one/few_keys"),
    (_takes_even_numbers_for_all, "gap/one/few_keys"),
    (_takes_the_first_partition_for_everyones_home, "wrong_partition/one/few_keys"),
)


@pytest.fixture(scope="module")
def whole(spark: SparkSession) -> dict[str, Outcome]:
    """What the real judge says of the cells with nothing taken out; judged once for all tests."""
    results = judged(spark, *(finds for _, finds in SABOTAGE))
    return {str(each.cell): each.outcome for each in results.cells}


@pytest.mark.parametrize(("broken", "finds"), SABOTAGE)
def test_the_real_judge_with_one_thought_less_is_found_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Outcome],
    broken: Break, finds: str,
) -> None:  # fmt: skip
    assert whole[finds] is Outcome.HELD
    broken(monkeypatch)

    assert judged(spark, finds).outcome is Outcome.VIOLATED
