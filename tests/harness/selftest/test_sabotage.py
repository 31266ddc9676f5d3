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
from streamquake.harness.reconcile.result import VIOLATIONS, Reconciled
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.selftest.cells import chosen
from streamquake.harness.selftest.conduct import Judge, Plan, conduct
from streamquake.harness.selftest.result import SelfTest
from streamquake.reports.outcome import Outcome

RECORDS = 800
ALL = "all_at_once/one/few_keys"
Break = Callable[[pytest.MonkeyPatch], None]


def judged(spark: SparkSession, *only: str, judge: Judge | None = None) -> SelfTest:
    cells = tuple(chosen(only, RECORDS))
    plan = Plan(seed=2, records=RECORDS, cells=cells, again="streamquake selftest")
    return conduct(plan, spark, tell=lambda result: None, judge=judge)


def saying(change: Callable[[Reconciled], Reconciled]) -> Judge:
    """The real judge, whose words are changed."""

    def judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> Reconciled:
        return change(reconcile.reconcile(expected, actual, shape))

    return judge


def without(name: str, said: Reconciled) -> Reconciled:
    """As a judge that has never heard of a class."""
    findings = tuple(f for f in said.findings if not f.what.startswith(name))
    return replace(said, counts={**said.counts, name: 0}, findings=findings)


@pytest.mark.parametrize("name", [*VIOLATIONS, "unknown_absent"])
def test_a_judge_that_ignores_a_class_is_found_out(spark: SparkSession, name: str) -> None:
    results = judged(spark, ALL, judge=saying(lambda said: without(name, said)))

    assert results.outcome is Outcome.VIOLATED
    (cell,) = results.failed
    planted = cell.planted[name]
    assert cell.differences[0] == f"{name}: planted {planted}, reported 0"
    assert cell.again == f"streamquake selftest --seed 2 --records 800 --only {ALL}"


def test_a_judge_that_cries_wolf_is_found_out(spark: SparkSession) -> None:
    def crying(said: Reconciled) -> Reconciled:
        return replace(said, counts={**said.counts, "lost": 1})

    results = judged(spark, "clean/none/few_keys", judge=saying(crying))

    assert results.outcome is Outcome.VIOLATED
    assert results.cells[0].differences == ("lost: planted 0, reported 1",)


def test_a_judge_that_invents_a_class_is_found_out(spark: SparkSession) -> None:
    def inventing(said: Reconciled) -> Reconciled:
        return replace(said, counts={**said.counts, "late": 4, "early": None})

    results = judged(spark, "clean/none/few_keys", judge=saying(inventing))

    assert results.cells[0].differences == ("late: planted 0, reported 4",)


def test_a_class_that_could_not_be_judged_is_not_zero(spark: SparkSession) -> None:
    def sure(said: Reconciled) -> Reconciled:
        return replace(said, counts={**said.counts, "reordered": 0})

    results = judged(spark, "clean/none/dense_ids", judge=saying(sure))

    assert results.cells[0].differences == ("reordered: planted not judged, reported 0",)


def test_right_numbers_of_wrong_records_are_found_out(spark: SparkSession) -> None:
    def blaming(said: Reconciled) -> Reconciled:
        (finding,) = said.findings
        wrong = replace(finding, detail={**finding.detail, "seq": 10_000})
        return replace(said, findings=(wrong,))

    results = judged(spark, "lost/one/few_keys", judge=saying(blaming))

    assert results.outcome is Outcome.VIOLATED
    assert "an example of lost names a record not planted" in results.cells[0].differences[0]


def test_missing_examples_are_found_out(spark: SparkSession) -> None:
    silent = saying(lambda said: replace(said, findings=()))

    results = judged(spark, "lost/one/few_keys", judge=silent)

    assert results.cells[0].differences == ("no example of lost",)


def test_a_judge_that_breaks_leaves_its_cell_undecided(spark: SparkSession) -> None:
    def broken(expected: DataFrame, actual: DataFrame, shape: Shape) -> Reconciled:
        raise RuntimeError("no space left")

    results = judged(spark, "lost/one/few_keys", "clean/none/few_keys", judge=broken)

    assert results.outcome is Outcome.UNDECIDED
    assert [cell.error for cell in results.cells] == ["RuntimeError: no space left"] * 2


def _forgets_phantoms_in_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(order, "_without", lambda records, phantoms, shape: records)


def _keeps_copies_in_the_order(patch: pytest.MonkeyPatch) -> None:
    real = order.steps_back

    def keeping(actual: DataFrame, shape: Shape, **options: Any) -> DataFrame:
        return real(actual, shape, **{**options, "duplicates": False})

    patch.setattr(reconcile, "steps_back", keeping)


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


@pytest.mark.parametrize(
    ("broken", "finds"),
    [
        (_forgets_phantoms_in_the_order, "phantom_unsent/block/hash_ids"),
        (_keeps_copies_in_the_order, "duplicated_once/block/few_keys"),
        (_takes_null_for_nothing, "changed_value/one/nulls"),
        (_compares_nothing, "changed_checksum/one/few_keys"),
        (_knows_one_send_only, "changed_value/one/resent"),
        (_looks_at_no_bucket, "lost/first/many_keys"),
        (_takes_refused_for_unknown, "phantom_refused/one/few_keys"),
    ],
)
def test_the_real_judge_with_one_thought_less_is_found_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, broken: Break, finds: str
) -> None:
    assert judged(spark, finds).outcome is Outcome.HELD
    broken(monkeypatch)

    assert judged(spark, finds).outcome is Outcome.VIOLATED
