"""Whether the message keys of an output are the keys of its records.

A job may write another column as the message key, and values of that column may be sent keys too.
Where the output has a column `key`, it shows the key of each record. Elsewhere every message key
must have been sent, and before the first fault be in a single partition: a partitioner by key, and
one by subtask of a keyed job, put all records of a key into one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.reconcile.reading.promised_columns import parse_records
from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.observation_window import injected_ns
from streamquake.harness.verdict.expected_output import expectations

OTHER_COLUMN = "the message keys of its records are not their column `key`"
NOT_SENT = "its records have message keys that were not sent"
SPREAD = "its records of one message key are in several partitions"


def message_key_doubt(case: JudgedRun, output: AppendedRecords) -> str | None:
    """What shows that the message keys are not the keys of the records; None where nothing does. It
    reads the view `sent`, once for all checks of a run."""
    name = f"message keys of {output.name}"
    if name not in case.shared:
        case.shared[name] = _found_doubt(case, output)
    doubt: str | None = case.shared[name]
    return doubt


def _found_doubt(case: JudgedRun, output: AppendedRecords) -> str | None:
    with expectations(case) as all_expected:
        expected = all_expected.get(output.name)
        columns = case.experiment.promise.outputs[output.name].columns
        if expected is not None and "key" in columns and "key" in expected.columns:
            is_other = _is_other_column(output, expected)
            if is_other is not None:
                return OTHER_COLUMN if is_other else None
    records = output.records
    if not records.select("key").join(case.spark().table("sent"), "key", "anti").isEmpty():
        return NOT_SENT
    called_ns = injected_ns(case.history)
    if called_ns is not None:
        records = records.where(F.col("timestamp_ms") < output.ms(called_ns))
    places = records.groupBy("key").agg(
        F.min("partition").alias("one"), F.max("partition").alias("other")
    )
    return None if places.where("one <> other").isEmpty() else SPREAD


def _is_other_column(output: AppendedRecords, expected: DataFrame) -> bool | None:
    """Whether a message key differs from the column `key` of its record; None where no record has
    this column. A record that cannot be read shows nothing."""
    read = parse_records(output.records, expected, ("key",), ("_key",), output.map)
    differs = ~F.col("key").cast("string").eqNullSafe(F.col("_key"))
    found = read.where("key IS NOT NULL").agg(F.count("*"), F.count_if(differs)).first()
    assert found is not None
    return bool(found[1]) if found[0] else None
