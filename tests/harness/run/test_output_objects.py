"""The objects of a run's outputs: none before the run, and after it all are in its record."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.reading.objects import ObjectsUnreadable
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.run.output_collector import collect_outputs
from streamquake.harness.run.output_objects import ObjectsThere, reject_filled_folders
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.run_folder import RunFolder
from tests.fakes import fake_cluster
from tests.harness.histories import experiment
from tests.harness.reconcile.data_sets import write_rows
from tests.harness.reconcile.stub_store import answering, store

__all__ = ["store"]
ROWS = [{"id": n, "amount": n * 3} for n in range(20)]


def with_output(**outputs: Output) -> Experiment:
    plan = experiment()
    assert plan.job is not None
    promise = JobPromise(outputs=outputs, expected="SELECT * FROM sent")
    return plan.model_copy(update={"job": plan.job.model_copy(update={"promise": promise})})


def collected(plan: Experiment, spark: SparkSession, path: Path) -> StoredOutput:
    folder = RunFolder.create(path, "r")
    HistoryWriter(folder.history).close()
    collect_outputs(fake_cluster(), plan, spark, folder)
    return StoredOutput(path=folder.data / "copies")


def test_a_run_stores_the_objects_of_an_output(
    store: Path, tmp_path: Path, spark: SparkSession
) -> None:
    plan = with_output(copies=Output(s3="s3://results/out"))
    reject_filled_folders(plan, fake_cluster())
    nothing = collected(plan, spark, tmp_path / "nothing")
    assert (nothing.complete, nothing.rows()) == (True, 0), "a missing output has lost all records"

    write_rows(store / "results" / "out" / "part-0.json", ROWS)
    write_rows(store / "results" / "out" / "_part-1_tmp.json", ROWS)
    stored = collected(plan, spark, tmp_path / "some")

    facts = stored.facts()
    assert (facts["records"], facts["pending_files"], stored.rows()) == (20, 1, 20)
    assert stored.of_another("s3://results/out") == ""
    with pytest.raises(ObjectsThere, match="s3://results/out of the output copies has 2 objects"):
        reject_filled_folders(plan, fake_cluster())


def test_a_reading_that_fails_is_not_complete(
    store: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store / "results" / "out").mkdir()
    answering(monkeypatch, ["gone"], fs.FileType.Directory)
    plan = with_output(copies=Output(s3="s3://results/out"))
    folder = RunFolder.create(tmp_path / "runs", "r")
    HistoryWriter(folder.history).close()

    with pytest.raises(ObjectsUnreadable):
        collect_outputs(fake_cluster(), plan, spark, folder)

    assert not StoredOutput(path=folder.data / "copies").complete


def test_an_output_of_a_single_object_is_judged_as_its_file(
    store: Path, tmp_path: Path, spark: SparkSession
) -> None:
    write_rows(store / "results" / "out.json", ROWS)
    plan = with_output(copies=Output(s3="s3://results/out.json"))
    assert collected(plan, spark, tmp_path / "runs").rows() == 20
