"""A rehearsal of the verdict: a few correct records are judged while the cluster still runs.

The first verdict of a session costs twice as much as a later one: Java loads its classes, and Spark
compiles the code of each plan. A rehearsal judges a record with the same plans by the same code, so
that this is done before all output is committed. Its result is not used.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.reconcile.expressions import message_line
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.database_table import store_rows
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.spark_session import runs_here
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.expected_output import Expectations, expectations, register_sent
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import History, usual_kind
from streamquake.topologies.problems import bad_input

RECORDS = 5000
"""As many that Java compiles what is called for each record."""
FOLDER = "spark.local.dir"
"""The setting with the session's own folder, which is removed at the end of this process."""


def rehearse(experiment: Experiment, spark: SparkSession) -> None:
    """Judge a synthetic record of the experiment. Raises BadInput for an expectation that does not
    fit what is sent, and what the judging raises. Other machines could not read the record, so with
    their master it does nothing."""
    if not runs_here(spark):
        return
    folder = spark.sparkContext.getConf().get(FOLDER)
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=folder) as data:
        # A session of its own has its own view of the records sent.
        session = spark.newSession()
        case = JudgedRun(
            experiment=experiment,
            history=_history(min(experiment.workload.planned or 0, RECORDS)),
            data=Path(data),
            metrics=Path(data) / "none",
            spark=lambda: session,
        )
        experiment.workload.store(case.data, experiment.seed)
        register_sent(case)
        with expectations(case) as expected:
            _reject_wrong(expected, case)
            _write_outputs(expected, case)
        ExactlyOnce().check(case)


def _reject_wrong(expected: Expectations, case: JudgedRun) -> None:
    """Raise BadInput for an expectation that Spark cannot analyse over the registered records, with
    the known columns. The verdict would be undecided."""
    known = ", ".join(case.spark().table("sent").columns)
    for name in expected:
        try:
            expected[name].schema  # noqa: B018
        except AnalysisException as error:
            place = f"{case.experiment.name}: expected of {name}"
            message = f"{message_line(error)}; the columns of `sent` are {known}"
            raise bad_input(place, message) from error


def _history(records: int) -> History:
    """A history in which all records were acknowledged, and everything was committed."""
    events: dict[Action, dict[str, int | str]] = {
        Action.SENT: {"first": 0, "last": records - 1, "count": records, "status": "acknowledged"},
        Action.WORKLOAD_DONE: {"acknowledged": records, "failed": 0, "unknown": 0},
        Action.DRAINED: {},
    }
    return History(
        Event(
            index=n,
            at_ns=n,
            process="rehearsal",
            kind=usual_kind(action),
            action=action,
            value=value,
        )
        for n, (action, value) in enumerate(events.items())
    )


def _write_outputs(expected: Expectations, case: JudgedRun) -> None:
    """Write the expected records as outputs. One with a format or a form of its own stays out."""
    for name, output in case.experiment.promise.outputs.items():
        if name in expected and not (output.map or output.retracts or output.format):
            value = F.to_json(F.struct(*map(quote_name, output.columns))).alias("value")
            lines, into = expected[name].select(value), StoredOutput(path=case.data / name)
            if output.kafka is not None:
                _store_topic(lines, output.kafka, into)
            elif output.address is not None:
                store_rows(lines, output.address, into=into, source=output.place, prepared=0)
            else:
                _read_folder(lines, case.data / f"{name}.copied", into, output.place)


def _store_topic(lines: DataFrame, topic: str, into: StoredOutput) -> None:
    """Store records in the form of `stored_topic.py`, which needs no Spark."""
    records = lines.select(
        F.lit(topic).alias("topic"),
        F.lit(0).alias("partition"),
        F.monotonically_increasing_id().alias("offset"),
        F.lit(0).cast("bigint").alias("timestamp_ms"),
        F.lit(None).cast("string").alias("key"),
        "value",
        F.lit(True).alias("committed"),
        F.lit(True).alias("appended"),
    )
    records.write.parquet(str(into.part("committed")))
    offsets = into.columns("offset")["offset"]
    ends = {"0": pc.max(offsets).as_py() + 1} if len(offsets) else {}
    facts = {"kind": "kafka", "records": len(offsets), "uncommitted": 0}
    into.finish({**facts, "ends": ends, "stable_ends": ends})


def _read_folder(lines: DataFrame, folder: Path, into: StoredOutput, source: str) -> None:
    """Write lines into files, and read these as a run does."""
    lines.write.text(str(folder))
    read_files(lines.sparkSession, folder, into=into, source=source)
