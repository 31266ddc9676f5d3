"""The rehearsal of a verdict: it judges as a run does, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.verdict import rehearsal
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.rehearsal import FOLDER, rehearse
from streamquake.reports.record.outcome import CheckResult, Outcome

EXPERIMENT = "kill-taskmanager-mid-checkpoint"
"""It has a topic and a folder as outputs."""


def test_a_rehearsal_judges_every_output_like_that_of_a_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[CheckResult] = []

    class Recorded(ExactlyOnce):
        def check(self, case: JudgedRun) -> CheckResult:
            results.append(super().check(case))
            return results[-1]

    monkeypatch.setattr(rehearsal, "ExactlyOnce", Recorded)
    rehearse(load_experiment(EXPERIMENT, sets=["workload.numbered.records=1200"], seed=1), spark)

    (result,) = results
    assert result.outcome == Outcome.HELD
    assert result.counts["totals.actual"] == result.counts["totals-files.actual"] == 1200


def test_a_rehearsal_leaves_no_file_and_no_view(spark: SparkSession) -> None:
    spark.sql("SELECT 1 AS mine").createOrReplaceTempView("sent")
    rehearse(load_experiment(EXPERIMENT, sets=["workload.numbered.records=1200"], seed=1), spark)

    folder = spark.sparkContext.getConf().get(FOLDER)
    assert folder is not None
    assert not list(Path(folder).glob("rehearsal-*"))
    assert spark.table("sent").columns == ["mine"]
