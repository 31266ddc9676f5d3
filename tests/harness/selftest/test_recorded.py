"""Copies of a recorded run with one change: the judge finds the change, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.selftest.cells import Cell, changed_cells
from streamquake.harness.selftest.changes import changes
from streamquake.harness.selftest.recorded import RECORDED, judge_copy, recorded_cell
from streamquake.harness.selftest.recorded_run_copy import RecordedRunCopy
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from tests.tiers import others_nightly


def cell_of(name: str) -> Cell:
    return next(cell for cell in changed_cells() if cell.plant == name)


ONE_OF_EACH_CHECK = (
    "unchanged",
    "lost_record",  # exactly_once
    "metrics_missing",  # no check: the record as a whole
    "called_unaligned",  # checkpoints
    "older_checkpoint",  # restore
    "hanging_transaction",  # transactions
    "effect_unseen",  # effect
    "task_went_on",  # failover_scope
    "never_ran_again",  # recovery, failover_scope, restore, throughput
    "node_stayed_down",  # execution
)


def test_make_test_has_a_change_of_every_check() -> None:
    def checks_of(names: Iterable[str]) -> set[str]:
        return {
            check
            for name in names
            if isinstance(changes[name].expect, dict)
            for check in changes[name].expect
        }

    assert checks_of(ONE_OF_EACH_CHECK) == checks_of(changes)


@pytest.mark.parametrize("name", others_nightly(changes, ONE_OF_EACH_CHECK))
def test_every_change_is_found_and_nothing_else(spark: SparkSession, name: str) -> None:
    result = recorded_cell(cell_of(name), spark, again="")

    assert (result.outcome, result.differences, result.error) == (Outcome.HELD, (), "")


@pytest.fixture(scope="module")
def unchanged(spark: SparkSession) -> Results:
    """The results of the recorded run without a change."""
    return judge_copy(RecordedRunCopy(RECORDED), spark)


@pytest.mark.parametrize(
    "name", others_nightly([n for n in changes if not changes[n].clean], ONE_OF_EACH_CHECK)
)
def test_a_judge_that_misses_a_change_is_detected(
    spark: SparkSession, unchanged: Results, name: str
) -> None:
    result = recorded_cell(cell_of(name), spark, again="", judge=lambda *args: unchanged)

    assert result.outcome == Outcome.VIOLATED
    assert "expected" in result.differences[0]


def test_a_cell_whose_judge_fails_is_undecided(spark: SparkSession) -> None:
    def failing_judge(record: RecordedRunCopy, session: SparkSession) -> Results:
        raise RuntimeError("no space left")

    result = recorded_cell(cell_of("lost_record"), spark, again="", judge=failing_judge)

    assert (result.outcome, result.error) == (Outcome.UNDECIDED, "RuntimeError: no space left")


def test_the_original_record_is_not_changed(spark: SparkSession, unchanged: Results) -> None:
    before = {path: path.read_bytes() for path in RECORDED.rglob("*") if path.is_file()}

    recorded_cell(cell_of("lost_record"), spark, again="", judge=lambda *args: unchanged)

    assert {path: path.read_bytes() for path in RECORDED.rglob("*") if path.is_file()} == before
