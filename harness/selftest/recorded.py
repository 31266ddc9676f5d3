"""The cells of the self-test that judge a copy of a recorded run with one change."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from streamquake.harness.selftest.cells import Cell
from streamquake.harness.selftest.changes import Change, changes
from streamquake.harness.selftest.recorded_run_copy import RecordedRunCopy
from streamquake.harness.selftest.result import CellResult
from streamquake.harness.verdict.judge import judge
from streamquake.harness.verdict.recorded_run import recorded_experiment
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.topologies.errors import kind_of

RECORDED = Path(__file__).parent / "record" / "run"
"""The record of one real run of `record/experiment.yaml`."""
Judge = Callable[[RecordedRunCopy, SparkSession], Results]


def judge_copy(record: RecordedRunCopy, spark: SparkSession) -> Results:
    """Judge a record as `streamquake check` does."""
    folder = record.folder
    return judge(
        recorded_experiment(folder),
        folder,
        run_id=folder.run_id,
        ended="completed",
        spark=lambda: spark,
    )


def recorded_cell(
    cell: Cell, spark: SparkSession, *, again: str, judge: Judge = judge_copy
) -> CellResult:
    """Apply one change to a copy of the record. The result is held if the judge finds it, and
    nothing else."""
    began = time.perf_counter()
    change = changes[cell.plant]
    with tempfile.TemporaryDirectory(prefix="streamquake-selftest-") as folder:
        record = RecordedRunCopy(Path(shutil.copytree(RECORDED, Path(folder) / "run")))
        try:
            change.apply(record)
            met, differences = _met(change, judge(record, spark))
        except Exception as error:  # noqa: BLE001 - a judge that fails leaves its cell undecided
            return CellResult(
                cell=cell,
                outcome=Outcome.UNDECIDED,
                places=1,
                planted={},
                again=again,
                error=f"{type(error).__name__}: {error}",
                cause=kind_of(error),
                seconds=time.perf_counter() - began,
            )
    return CellResult(
        cell=cell,
        outcome=Outcome.HELD if met == Outcome.HELD else Outcome.VIOLATED,
        places=1,
        planted={},
        differences=differences,
        again=again,
        seconds=time.perf_counter() - began,
    )


def _met(change: Change, results: Results) -> tuple[Outcome, tuple[str, ...]]:
    met, reason = ExpectedOutcome.of(change.expect).met(results.outcome, results.checks)
    # A missing part of the record is in the reason of the results, not in a check.
    return met, () if met == Outcome.HELD else tuple(filter(None, (reason, results.reason)))
