"""The relations of a run that a user's query reads, as views of a session.

`sent` has the records that the job may have read, as for `expected`. Each output has a view of its
name with its committed records, read as its promise says: its columns, the place of a record
(`_partition`, `_offset` and `_timestamp_ms`; `_file` and `_position`; or `_table` and `_row`) and
`_value`, the text as it was written. A changelog has `_retracts`, an upsert `_deletes`. `history`
has the events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.check_sql import HISTORY, SENT
from streamquake.harness.experiment.outputs import Output
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.promised_columns import MALFORMED
from streamquake.harness.verdict.expected_output import (
    STAMP,
    actual_of,
    count_sends,
    expectations,
    possible_input,
)

EVENT_COLUMNS = (
    "index bigint, at_s double, process string, kind string, action string, value string"
)


@dataclass(frozen=True, kw_only=True)
class RelationSize:
    """How many rows a relation has, and how many records of an output are not among them because
    they cannot be read."""

    rows: int
    malformed: int = 0


@contextmanager
def relation_views(case: JudgedRun, read: Collection[str]) -> Iterator[Mapping[str, RelationSize]]:
    """Create a view of each relation that is `read`, given in small letters, in the session of the
    case, and give its size.

    Raises BadInput, or pyspark's errors, where the promise of an output does not fit its records.
    """
    sizes: dict[str, RelationSize] = {}
    if set(read) - {HISTORY}:
        # The types of an output's columns are those of its expected records.
        possible_input(case).createOrReplaceTempView(SENT)
    if SENT in read:
        sizes[SENT] = RelationSize(rows=count_sends(case, "acknowledged"))
    if HISTORY in read:
        _events(case).createOrReplaceTempView(HISTORY)
        sizes[HISTORY] = RelationSize(rows=len(case.history))
    with ExitStack() as stack:
        expected = stack.enter_context(expectations(case))
        for name, output in case.experiment.promise.outputs.items():
            if name.lower() in read:
                records = _records(case, name, output, expected.get(name))
                sizes[name] = _create_view(name, stack.enter_context(persisted(records)))
        yield sizes


def _events(case: JudgedRun) -> DataFrame:
    rows = [
        (e.index, e.at_s, e.process, str(e.kind), str(e.action), json.dumps(e.value, default=str))
        for e in case.history
    ]
    return case.spark().createDataFrame(rows, EVENT_COLUMNS)


def _records(case: JudgedRun, name: str, output: Output, expected: DataFrame | None) -> DataFrame:
    """The committed records of an output; of one without expected records all columns are text."""
    if expected is None:
        fields = [StructField(column, StringType()) for column in output.columns]
        expected = case.spark().createDataFrame([], StructType(fields))
        output = output.model_copy(update={"map": _texts(output)})
    own_names = {column: column for column in output.columns}
    stamped = (STAMP,) if output.kafka else ()
    return actual_of(case, name, output, expected, names=own_names, extra=stamped)[0]


def _texts(output: Output) -> dict[str, str]:
    """The expression of each column as text."""
    values = {column: output.map.get(column, quote_name(column)) for column in output.columns}
    return {column: f"CAST({value} AS STRING)" for column, value in values.items()}


def _create_view(name: str, records: DataFrame) -> RelationSize:
    readable = records.where(~F.col(MALFORMED)).drop(MALFORMED)
    readable.createOrReplaceTempView(quote_name(name))
    counted = records.agg(F.count("*"), F.count_if(MALFORMED)).collect()[0]
    return RelationSize(rows=counted[0] - counted[1], malformed=counted[1])
