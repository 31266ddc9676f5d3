"""A rehearsal of the verdict: a few correct records are judged while the cluster still runs.

The first verdict of a session costs twice as much as a later one: Java loads its classes, and Spark
compiles the code of each plan. A rehearsal judges a record with the same plans by the same code, so
that this is done before all output is committed. Its result is not used.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import Output
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.expected_output import expectations, register_sent
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import History

RECORDS = 5000
"""As many that Java compiles what is called for each record."""
FOLDER = "spark.local.dir"
"""The setting with the session's own folder, which is removed at the end of this process."""


def rehearse(experiment: Experiment, spark: SparkSession) -> None:
    """Judge a synthetic record of the experiment. Raises what the judging raises. Other machines
    could not read the record, so with their master it does nothing."""
    if not str(spark.sparkContext.master).startswith("local"):
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
        _write_outputs(case)
        ExactlyOnce().check(case)


def _history(records: int) -> History:
    """A history in which all records were acknowledged, and everything was committed."""
    events: dict[Action, dict[str, int | str]] = {
        Action.SENT: {"first": 0, "last": records - 1, "count": records, "status": "acknowledged"},
        Action.WORKLOAD_DONE: {"acknowledged": records, "failed": 0, "unknown": 0},
        Action.DRAINED: {},
    }
    return History(
        Event(index=n, at_ns=n, process="rehearsal", kind=Kind.INFO, action=action, value=value)
        for n, (action, value) in enumerate(events.items())
    )


def _write_outputs(case: JudgedRun) -> None:
    """Write the expected records as outputs. One with a format or a form of its own stays out."""
    register_sent(case)
    with expectations(case) as expected:
        for name, output in case.experiment.promise.outputs.items():
            if name in expected and not (output.map or output.retracts or output.format):
                _write(expected[name], output, StoredOutput(path=case.data / name))


def _write(expected: DataFrame, output: Output, into: StoredOutput) -> None:
    """Write records as `stored_topic.py` and `files.py` do."""
    value = F.to_json(F.struct(*map(quote_name, output.columns))).alias("value")
    position = F.monotonically_increasing_id()
    if output.kafka is not None:
        topic = F.lit(output.kafka).alias("topic"), F.lit(0).alias("partition")
        stamp = F.lit(0).cast("bigint").alias("timestamp_ms")
        place = (*topic, position.alias("offset"), stamp, F.lit(None).cast("string").alias("key"))
        flags = (F.lit(True).alias("committed"), F.lit(True).alias("appended"))
        records = expected.select(*place, value, *flags)
        ends = {"ends": {}, "stable_ends": {}, "uncommitted": 0}
        facts = {"kind": "kafka", **ends}
    else:
        file = F.lit("part-0").alias("file")
        records = expected.select(value, file, position.alias("position"))
        facts = {"kind": "files", "pending_files": 0}
    records.coalesce(2).write.parquet(str(into.part("records")))
    into.finish({**facts, "records": into.frame(expected.sparkSession).count()})
