"""The rehearsal of a verdict: it judges as a run does, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.verdict import rehearsal
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.rehearsal import FOLDER, rehearse
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.topologies.problems import BadInput

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


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("SELECT key, sequence FROM sent", "the columns of `sent` are key, seq"),
        ("SELECT key, seq, nosuch(key) FROM sent", "`nosuch`"),
        ("SELECT key.part, seq FROM sent", "INVALID_EXTRACT_BASE_FIELD_TYPE"),
    ],
)
def test_a_wrong_expectation_is_bad_input_before_anything_is_judged(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, expected: str, message: str
) -> None:
    monkeypatch.setattr(rehearsal, "ExactlyOnce", lambda: pytest.fail("it was judged"))
    planned = load_experiment(EXPERIMENT, sets=["workload.numbered.records=10"], seed=1)
    wrong = {"totals": Output(kafka="totals", expected=expected)}
    job = Job(sql="SELECT 1", promise=JobPromise(outputs=wrong))

    with pytest.raises(BadInput) as raised:
        rehearse(planned.model_copy(update={"job": job}), spark)

    assert message in str(raised.value)
    assert "expected of totals: " in str(raised.value)


def test_a_table_is_rehearsed_too(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[CheckResult] = []
    judge = ExactlyOnce.check
    monkeypatch.setattr(ExactlyOnce, "check", lambda self, case: results.append(judge(self, case)))
    table = Output(
        table="postgresql://app@${db.sql}/shop/totals", expected="SELECT key, seq FROM sent"
    )
    planned = load_experiment(EXPERIMENT, sets=["workload.numbered.records=10"], seed=1)
    job = Job(sql="SELECT 1", promise=JobPromise(outputs={"totals": table}))

    rehearse(planned.model_copy(update={"job": job}), spark)

    assert results[0].outcome == Outcome.HELD


@pytest.mark.nightly
def test_a_rehearsal_leaves_no_file_and_no_view(spark: SparkSession) -> None:
    spark.sql("SELECT 1 AS mine").createOrReplaceTempView("sent")
    rehearse(load_experiment(EXPERIMENT, sets=["workload.numbered.records=1200"], seed=1), spark)

    folder = spark.sparkContext.getConf().get(FOLDER)
    assert folder is not None
    assert not list(Path(folder).glob("rehearsal-*"))
    assert spark.table("sent").columns == ["mine"]


def test_with_the_master_of_other_machines_nothing_is_rehearsed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "runs_here", lambda session: session is not spark)
    monkeypatch.setattr(rehearsal, "ExactlyOnce", lambda: pytest.fail("it was judged"))
    rehearse(load_experiment(EXPERIMENT, sets=["workload.numbered.records=10"], seed=1), spark)


def test_outputs_with_a_format_or_a_form_of_their_own_stay_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = "SELECT key, seq FROM sent"
    outputs = {
        "plain": Output(kafka="plain", expected=sent),
        "unknown": Output(kafka="unknown"),
        "mapped": Output(kafka="mapped", expected=sent, map={"key": "account"}),
        "changelog": Output(kafka="changelog", expected=sent, retracts="op = '-D'"),
        "typed": Output(kafka="typed", expected=sent, format="text"),
    }
    planned = load_experiment(EXPERIMENT, sets=["workload.numbered.records=10"], seed=1)
    job = Job(sql="SELECT 1", promise=JobPromise(outputs=outputs))
    written: list[str] = []
    monkeypatch.setattr(rehearsal, "_store_topic", lambda rows, topic, into: written.append(topic))
    monkeypatch.setattr(ExactlyOnce, "check", lambda self, case: None)

    rehearse(planned.model_copy(update={"job": job}), spark)

    assert written == ["plain"]
