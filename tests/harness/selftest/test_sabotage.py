"""The self-test can fail: with a broken judge it is violated.

Some judges here return a wrong result; others are the real judge with one step removed, as a bug
would remove it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile import digest, reconcile, retractions, row_diff, row_hashes
from streamquake.harness.reconcile.anomalies import gap, unmatched_retraction, wrong_partition
from streamquake.harness.reconcile.result import VIOLATIONS, ReconciliationResult
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.selftest.cells import cells_matching
from streamquake.harness.selftest.result import SelfTest
from streamquake.harness.selftest.selftest_runner import Judge, Plan, run_selftest
from streamquake.reports.record.outcome import Outcome

RECORDS = 800
ALL = "all_at_once/one/few_keys"
LOST = "lost/one/few_keys"
CLEAN = "clean/none/few_keys"
UNORDERED = "clean/none/dense_ids"
RemoveStep = Callable[[pytest.MonkeyPatch], None]


def run_cells(spark: SparkSession, *names: str, judge: Judge | None = None) -> SelfTest:
    """Judge the cells of these names; a name given twice is judged twice, on the same data."""
    cells = tuple(cell for name in names for cell in cells_matching([name], RECORDS))
    plan = Plan(seed=2, records=RECORDS, cells=cells, again="streamquake selftest")
    return run_selftest(plan, spark, show_result=lambda result: None, judge=judge)


@pytest.fixture(scope="module")
def real_results(spark: SparkSession) -> dict[str, ReconciliationResult]:
    """Cell -> the result of the real judge; each cell is judged once, for all tests."""
    returned: list[ReconciliationResult] = []

    def judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> ReconciliationResult:
        returned.append(reconcile.reconcile(expected, actual, shape))
        return returned[-1]

    results = run_cells(spark, ALL, LOST, CLEAN, UNORDERED, judge=judge)
    assert results.outcome is Outcome.HELD
    # The counts differ between all of these cells, so they identify the result of a cell.
    return {
        str(cell_result.cell): next(
            result for result in returned if result.counts == cell_result.reported
        )
        for cell_result in results.cells
    }


def with_counts(result: ReconciliationResult, **counts: int | None) -> ReconciliationResult:
    """The same result with some other counts."""
    return replace(result, counts={**result.counts, **counts})


def run_with_results(spark: SparkSession, cell: str, *fakes: ReconciliationResult) -> SelfTest:
    """Judge a cell once for each fake result, with a judge that returns it; the data of the cell,
    which are expensive, are generated once."""
    returned = iter(fakes)
    return run_cells(spark, *[cell] * len(fakes), judge=lambda *sides: next(returned))


def test_a_judge_that_ignores_a_class_is_detected(
    spark: SparkSession, real_results: dict[str, ReconciliationResult]
) -> None:
    names = [*VIOLATIONS, "unknown_absent"]
    findings = {
        name: tuple(f for f in real_results[ALL].findings if not f.what.startswith(name))
        for name in names
    }
    without_class = [
        replace(with_counts(real_results[ALL], **{name: 0}), findings=findings[name])
        for name in names
    ]

    results = run_with_results(spark, ALL, *without_class)

    assert results.outcome is Outcome.VIOLATED
    assert len(results.failed) == len(names)
    planted = results.failed[0].planted
    assert {cell.differences[0] for cell in results.failed} == {
        f"{name}: planted {planted[name]}, reported 0" for name in names
    }
    again = f"streamquake selftest --seed 2 --records 800 --only {ALL}"
    assert {cell.again for cell in results.failed} == {again}


WRONG_COUNTS: dict[str, dict[str, dict[str, int | None]]] = {
    CLEAN: {
        "lost: planted 0, reported 1": {"lost": 1},
        "late: planted 0, reported 4": {"late": 4, "early": None},
        "lost: planted 0, reported not judged": {"lost": None},
    },
    UNORDERED: {"reordered: planted not judged, reported 0": {"reordered": 0}},
}


@pytest.mark.parametrize("cell", WRONG_COUNTS)
def test_a_judge_that_reports_wrong_counts_is_detected(
    spark: SparkSession, real_results: dict[str, ReconciliationResult], cell: str
) -> None:
    wrong_results = (
        with_counts(real_results[cell], **counts) for counts in WRONG_COUNTS[cell].values()
    )

    results = run_with_results(spark, cell, *wrong_results)

    assert {cell.outcome for cell in results.cells} == {Outcome.VIOLATED}
    assert {result.differences for result in results.cells} == {
        (difference,) for difference in WRONG_COUNTS[cell]
    }


def test_examples_that_are_wrong_or_missing_are_detected(
    spark: SparkSession, real_results: dict[str, ReconciliationResult]
) -> None:
    (finding,) = real_results[LOST].findings
    wrong_finding = replace(finding, detail={**finding.detail, "seq": 10_000})
    returned = (
        replace(real_results[LOST], findings=findings) for findings in ((wrong_finding,), ())
    )

    results = run_with_results(spark, LOST, *returned)

    assert {cell.outcome for cell in results.cells} == {Outcome.VIOLATED}
    wrong_record, no_example = sorted(cell.differences for cell in results.cells)
    assert "an example of lost names a record not planted" in wrong_record[0]
    assert no_example == ("no example of lost",)


def test_a_cell_whose_judge_fails_is_undecided(spark: SparkSession) -> None:
    def failing_judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> ReconciliationResult:
        raise RuntimeError("no space left")

    results = run_cells(spark, LOST, CLEAN, judge=failing_judge)

    assert results.outcome is Outcome.UNDECIDED
    assert [cell.error for cell in results.cells] == ["RuntimeError: no space left"] * 2


def _phantoms_count_in_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "without_phantoms", lambda records, phantoms, shape: records)


def _copies_count_in_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "first_copies_of_keys", lambda records, keys, shape: records)


def _nulls_are_not_hashed(patch: pytest.MonkeyPatch) -> None:
    def without_marks(side: DataFrame, columns: Sequence[str], key: str) -> Column:
        return F.xxhash64(F.lit(key), *(F.col(name) for name in columns))

    patch.setattr(row_hashes, "keyed_hash", without_marks)


def _values_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    def identity_only(side: DataFrame, columns: Sequence[str], key: str) -> Column:
        return F.xxhash64(F.lit(key), *(F.col(n) for n in columns if n in ("key", "seq")))

    patch.setattr(row_hashes, "keyed_hash", identity_only)


def _only_one_send_is_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_diff, "_CHANGED", "IF(ok + unknown > 0 AND never_sent > 0, 1, 0)")


def _no_bucket_is_compared(patch: pytest.MonkeyPatch) -> None:
    real = digest.digest_of
    patch.setattr(reconcile, "digest_of", lambda rows: replace(real(rows), dirty=()))


def _failed_sends_are_unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_hashes, "UNKNOWN", "failed")


def _only_even_numbers_are_expected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gap, "_whole_numbers", lambda sequence, kind: sequence * 2)


def _all_keys_are_in_the_first_partition(patch: pytest.MonkeyPatch) -> None:
    real = wrong_partition._homes

    def first(side: DataFrame, key: Sequence[str], partition: str) -> DataFrame:
        return real(side, key, partition).withColumn(wrong_partition.HOME, F.lit(0))

    patch.setattr(wrong_partition, "_homes", first)


def _retractions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "final_records", lambda actual, shape: nullcontext(actual))


def _unsent_retractions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    real = retractions.unmatched_records

    def matched(actual: DataFrame, shape: Shape) -> DataFrame:
        return real(actual, shape).where(~retractions.is_retraction(shape))

    patch.setattr(unmatched_retraction, "unmatched_records", matched)


REMOVED_STEPS: Sequence[tuple[RemoveStep, str]] = (
    (_phantoms_count_in_the_order, "phantom_unsent/block/hash_ids"),
    (_copies_count_in_the_order, "duplicated_once/block/few_keys"),
    (_nulls_are_not_hashed, "changed_value/one/nulls"),
    (_values_are_not_compared, "changed_checksum/one/few_keys"),
    (_only_one_send_is_compared, "changed_value/one/resent"),
    (_no_bucket_is_compared, "lost/first/many_keys"),
    (_failed_sends_are_unknown, "phantom_refused/one/few_keys"),
    (_only_even_numbers_are_expected, "gap/one/few_keys"),
    (_all_keys_are_in_the_first_partition, "wrong_partition/one/few_keys"),
    (_retractions_are_ignored, "unmatched_retraction/one/dense_ids"),
    (_unsent_retractions_are_ignored, "unmatched_retraction/one/dense_ids"),
)


REPRESENTATIVES = ("_values_are_not_compared", "_unsent_retractions_are_ignored")
"""One removed step of the comparison by hashes, and one of an anomaly that is judged on request."""


@pytest.fixture(scope="module")
def outcome_of(spark: SparkSession) -> Callable[[str], Outcome]:
    """The outcome of a cell with the real judge; each cell is judged once, for all tests."""
    return cache(lambda cell: run_cells(spark, cell).outcome)


@pytest.mark.parametrize(
    ("remove_step", "cell"),
    [
        pytest.param(
            *step, marks=() if step[0].__name__ in REPRESENTATIVES else pytest.mark.nightly
        )
        for step in REMOVED_STEPS
    ],
)
def test_the_real_judge_with_one_step_removed_is_detected(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    outcome_of: Callable[[str], Outcome],
    remove_step: RemoveStep,
    cell: str,
) -> None:
    assert outcome_of(cell) is Outcome.HELD
    remove_step(monkeypatch)

    assert run_cells(spark, cell).outcome is Outcome.VIOLATED
