"""The self-test can fail: a judge that is broken in one place makes it violated.

Some judges here give a wrong answer; others are the real one with one step removed, as a mistake
would remove it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile import digest, reconcile, retractions, row_diff, row_hashes
from streamquake.harness.reconcile.anomalies import gap, unmatched_retraction, wrong_partition
from streamquake.harness.reconcile.result import VIOLATIONS, ReconciliationResult
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.selftest.cells import chosen
from streamquake.harness.selftest.result import SelfTest
from streamquake.harness.selftest.selftest_runner import Judge, Plan, conduct
from streamquake.reports.record.outcome import Outcome

RECORDS = 800
ALL = "all_at_once/one/few_keys"
LOST = "lost/one/few_keys"
CLEAN = "clean/none/few_keys"
UNORDERED = "clean/none/dense_ids"
Break = Callable[[pytest.MonkeyPatch], None]


def judged(spark: SparkSession, *names: str, judge: Judge | None = None) -> SelfTest:
    """The cells of these names; one that is named twice is judged twice, on the same data."""
    cells = tuple(cell for name in names for cell in chosen([name], RECORDS))
    plan = Plan(seed=2, records=RECORDS, cells=cells, again="streamquake selftest")
    return conduct(plan, spark, show_message=lambda result: None, judge=judge)


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> dict[str, ReconciliationResult]:
    """The real judge's answers for some cells; each is judged once, for all tests."""
    given: list[ReconciliationResult] = []

    def judge(expected: DataFrame, actual: DataFrame, shape: Shape) -> ReconciliationResult:
        given.append(reconcile.reconcile(expected, actual, shape))
        return given[-1]

    results = judged(spark, ALL, LOST, CLEAN, UNORDERED, judge=judge)
    assert results.outcome is Outcome.HELD
    # Distinguished by their counts, which differ between all of these cells.
    return {
        str(each.cell): next(answer for answer in given if answer.counts == each.reported)
        for each in results.cells
    }


def other(answer: ReconciliationResult, **counts: int | None) -> ReconciliationResult:
    """The same answer with other counts."""
    return replace(answer, counts={**answer.counts, **counts})


def judged_by(spark: SparkSession, cell: str, *answers: ReconciliationResult) -> SelfTest:
    """A cell judged as often as there are answers, by judges that give these whatever the
    data: the data of a cell is expensive and an answer is not."""
    given = iter(answers)
    return judged(spark, *[cell] * len(answers), judge=lambda *sides: next(given))


def test_a_judge_that_ignores_a_class_is_detected(
    spark: SparkSession, answers: dict[str, ReconciliationResult]
) -> None:
    names = [*VIOLATIONS, "unknown_absent"]
    findings = {
        name: tuple(f for f in answers[ALL].findings if not f.what.startswith(name))
        for name in names
    }
    ignorant = [
        replace(other(answers[ALL], **{name: 0}), findings=findings[name]) for name in names
    ]

    results = judged_by(spark, ALL, *ignorant)

    assert results.outcome is Outcome.VIOLATED
    assert len(results.failed) == len(names)
    planted = results.failed[0].planted
    assert {cell.differences[0] for cell in results.failed} == {
        f"{name}: planted {planted[name]}, reported 0" for name in names
    }
    again = f"streamquake selftest --seed 2 --records 800 --only {ALL}"
    assert {cell.again for cell in results.failed} == {again}


REPORTED_OF: dict[str, dict[str, dict[str, int | None]]] = {
    CLEAN: {
        "lost: planted 0, reported 1": {"lost": 1},
        "late: planted 0, reported 4": {"late": 4, "early": None},
        "lost: planted 0, reported not judged": {"lost": None},
    },
    UNORDERED: {"reordered: planted not judged, reported 0": {"reordered": 0}},
}


@pytest.mark.parametrize("cell", REPORTED_OF)
def test_a_judge_that_reports_more_or_less_than_there_is_is_detected(
    spark: SparkSession, answers: dict[str, ReconciliationResult], cell: str
) -> None:
    wrong = (other(answers[cell], **counts) for counts in REPORTED_OF[cell].values())

    results = judged_by(spark, cell, *wrong)

    assert {each.outcome for each in results.cells} == {Outcome.VIOLATED}
    assert {each.differences for each in results.cells} == {
        (recorded,) for recorded in REPORTED_OF[cell]
    }


def test_examples_that_are_wrong_or_missing_are_detected(
    spark: SparkSession, answers: dict[str, ReconciliationResult]
) -> None:
    (finding,) = answers[LOST].findings
    wrong = replace(finding, detail={**finding.detail, "seq": 10_000})
    given = (replace(answers[LOST], findings=findings) for findings in ((wrong,), ()))

    results = judged_by(spark, LOST, *given)

    assert {each.outcome for each in results.cells} == {Outcome.VIOLATED}
    of_another, none = sorted(each.differences for each in results.cells)
    assert "an example of lost names a record not planted" in of_another[0]
    assert none == ("no example of lost",)


def test_a_judge_that_breaks_leaves_its_cell_undecided(spark: SparkSession) -> None:
    def broken(expected: DataFrame, actual: DataFrame, shape: Shape) -> ReconciliationResult:
        raise RuntimeError("no space left")

    results = judged(spark, LOST, CLEAN, judge=broken)

    assert results.outcome is Outcome.UNDECIDED
    assert [cell.error for cell in results.cells] == ["RuntimeError: no space left"] * 2


def _forgets_phantoms_in_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "without_phantoms", lambda records, phantoms, shape: records)


def _keeps_copies_in_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "first_copies", lambda records, shape: records)


def _takes_null_for_nothing(patch: pytest.MonkeyPatch) -> None:
    def without_marks(side: DataFrame, columns: Sequence[str], key: str) -> Column:
        return F.xxhash64(F.lit(key), *(F.col(name) for name in columns))

    patch.setattr(row_hashes, "keyed_hash", without_marks)


def _compares_nothing(patch: pytest.MonkeyPatch) -> None:
    def identity_only(side: DataFrame, columns: Sequence[str], key: str) -> Column:
        return F.xxhash64(F.lit(key), *(F.col(n) for n in columns if n in ("key", "seq")))

    patch.setattr(row_hashes, "keyed_hash", identity_only)


def _knows_one_send_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_diff, "_CHANGED", "IF(ok + unknown > 0 AND alien > 0, 1, 0)")


def _reads_no_bucket(patch: pytest.MonkeyPatch) -> None:
    real = digest.digest_of
    patch.setattr(reconcile, "digest_of", lambda rows: replace(real(rows), dirty=()))


def _takes_refused_for_unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_hashes, "UNKNOWN", "failed")


def _takes_even_numbers_for_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gap, "_whole_numbers", lambda sequence, kind: sequence * 2)


def _takes_the_first_partition_for_every_key(patch: pytest.MonkeyPatch) -> None:
    real = wrong_partition._homes

    def first(side: DataFrame, key: Sequence[str], partition: str) -> DataFrame:
        return real(side, key, partition).withColumn(wrong_partition.HOME, F.lit(0))

    patch.setattr(wrong_partition, "_homes", first)


def _retracts_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "final_records", lambda actual, shape: nullcontext(actual))


def _forgets_unsent_retractions(patch: pytest.MonkeyPatch) -> None:
    real = retractions.unmatched_records

    def matched(actual: DataFrame, shape: Shape) -> DataFrame:
        return real(actual, shape).where(~retractions.is_retraction(shape))

    patch.setattr(unmatched_retraction, "unmatched_records", matched)


SABOTAGE: Sequence[tuple[Break, str]] = (
    (_forgets_phantoms_in_the_order, "phantom_unsent/block/hash_ids"),
    (_keeps_copies_in_the_order, "duplicated_once/block/few_keys"),
    (_takes_null_for_nothing, "changed_value/one/nulls"),
    (_compares_nothing, "changed_checksum/one/few_keys"),
    (_knows_one_send_only, "changed_value/one/resent"),
    (_reads_no_bucket, "lost/first/many_keys"),
    (_takes_refused_for_unknown, "phantom_refused/one/few_keys"),
    (_takes_even_numbers_for_all, "gap/one/few_keys"),
    (_takes_the_first_partition_for_every_key, "wrong_partition/one/few_keys"),
    (_retracts_nothing, "unmatched_retraction/one/dense_ids"),
    (_forgets_unsent_retractions, "unmatched_retraction/one/dense_ids"),
)


@pytest.fixture(scope="module")
def whole(spark: SparkSession) -> dict[str, Outcome]:
    """The real judge's outcomes of the cells with nothing removed; judged once for all tests."""
    results = judged(spark, *(finds for _, finds in SABOTAGE))
    return {str(each.cell): each.outcome for each in results.cells}


@pytest.mark.parametrize(("broken", "finds"), SABOTAGE)
def test_the_real_judge_with_one_step_removed_is_detected(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    whole: dict[str, Outcome],
    broken: Break,
    finds: str,
) -> None:
    assert whole[finds] is Outcome.HELD
    broken(monkeypatch)

    assert judged(spark, finds).outcome is Outcome.VIOLATED
