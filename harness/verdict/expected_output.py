"""The records that a run's outputs should hold: the job's expectation over the records sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import INPUT_FOLDER, Output
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.promised_columns import (
    FILE_LANE,
    FILE_POSITION,
    KAFKA_LANE,
    KAFKA_POSITION,
    MALFORMED,
    RAW,
    parse_records,
)
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reconcile import reconciled
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.sql.safe_sql import safe_query
from streamquake.harness.reconcile.upserts import deletes_without_key
from streamquake.harness.reconcile.values.promised import with_canonical_texts
from streamquake.reports.record.run_events import RecordsSent, WorkloadDone

STATUS = "status"
STAMP = "_timestamp_ms"
RETRACTS, DELETES = "_retracts", "_deletes"


def register_sent(case: JudgedRun) -> None:
    """Create the view `sent` of the records that the job may have read."""
    possible_input(case).createOrReplaceTempView("sent")


def possible_input(case: JudgedRun) -> DataFrame:
    """The records that the job may have read, with the columns of the workload.

    The input topic, where it was read, settles the sends of unknown result: a record in it counts
    as acknowledged, and the job never read the others.
    """
    workload = case.experiment.workload
    sent = workload.sent_frame(case.spark(), case.history, case.experiment.seed)
    records = sent.where(F.col(STATUS) != "failed")
    topic = StoredOutput(path=case.data / INPUT_FOLDER)
    if topic.complete:
        if damage := topic.lost_files() or topic.miscount(case.spark):
            raise ValueError(f"{INPUT_FOLDER}: {damage}")
        known = records.where(F.col(STATUS) == "acknowledged")
        arrived = topic.frame(case.spark()).select(
            F.from_json("value", "index bigint")["index"].alias("index")
        )
        settled = records.where(F.col(STATUS) == "unknown").join(arrived, "index", "semi")
        return known.unionByName(settled.withColumn(STATUS, F.lit("acknowledged")))
    return records


def count_sends(case: JudgedRun, status: str) -> int:
    """How many sends are recorded with this result."""
    return sum(sent.count for sent in case.history.of(RecordsSent) if sent.status == status)


def has_unsettled_sends(case: JudgedRun) -> bool:
    """Whether the result of some sends is not known."""
    interrupted = case.history.first(WorkloadDone) is None
    settled = StoredOutput(path=case.data / INPUT_FOLDER).complete
    return not settled and (interrupted or count_sends(case, "unknown") > 0)


class Expectations(Mapping[str, DataFrame]):
    """The expected records of each output that declares an expectation, computed at the first
    access. An access raises BadInput, or pyspark's AnalysisException, for a wrong expectation."""

    def __init__(self, case: JudgedRun, stack: ExitStack) -> None:
        promise = case.experiment.promise
        self._queries = {
            name: query
            for name, output in promise.outputs.items()
            if (query := output.expected or promise.expected) is not None
        }
        self._frames: dict[str, DataFrame] = {}
        self._case, self._stack = case, stack

    def __getitem__(self, name: str) -> DataFrame:
        query = self._queries[name]
        if query not in self._frames:
            frame = safe_query(self._case.spark(), query, f"expected of {name}")
            if list(self._queries.values()).count(query) > 1:
                self._stack.enter_context(persisted(frame))
            self._frames[query] = frame
        return self._frames[query]

    def __contains__(self, name: object) -> bool:
        return name in self._queries

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


@contextmanager
def expectations(case: JudgedRun) -> Iterator[Expectations]:
    """The expected records of each output; outputs with the same query share one computation."""
    with ExitStack() as stack:
        yield Expectations(case, stack)


@contextmanager
def reconciled_output(
    case: JudgedRun, name: str, output: Output, expected: DataFrame
) -> Iterator[ReconciliationResult]:
    """Reconcile one output, as it was read, with its expected records. The frames of the result,
    with the `STAMP` of each record of a topic, are persisted while the block runs.

    Raises pyspark's AnalysisException when the expectation lacks a column that the output names.
    """
    stamped = (STAMP,) if output.kafka else ()
    actual, shape = actual_of(case, name, output, expected, extra=stamped)
    records = count_sends(case, "acknowledged")
    # Reading a record costs more than comparing it, and reconciliation scans it at least three
    # times.
    with (
        persisted(actual),
        reconciled(
            with_canonical_texts(expected), actual, shape, record_estimate=records
        ) as result,
    ):
        yield result


def actual_of(
    case: JudgedRun, name: str, output: Output, expected: DataFrame, *, extra: tuple[str, ...] = ()
) -> tuple[DataFrame, Shape]:
    """An output as it was read, with the columns of its expected records, and how to compare the
    two. `extra` names further columns of the reading, each with an underscore in front."""
    raw = StoredOutput(path=case.data / name).frame(case.spark())
    committed = raw.where("committed") if output.kafka else raw
    shape = _shape(output, expected)
    place = (*shape.place, *extra)
    if output.retracts is None:
        deletes = DELETES if output.upsert else None
        read = parse_records(
            committed, expected, output.columns, place, output.map, deletes=deletes
        )
        return (_reject_deletes_without_key(read, output) if deletes else read), shape
    with_retracts = expected.withColumn(RETRACTS, F.lit(False))
    mapping = {**output.map, RETRACTS: output.retracts}
    return parse_records(
        committed, with_retracts, (*output.columns, RETRACTS), place, mapping
    ), shape


def _reject_deletes_without_key(read: DataFrame, output: Output) -> DataFrame:
    """Mark a delete without a key as malformed."""
    without_key = deletes_without_key(
        F.col(DELETES), (F.col(quote_name(name)) for name in output.identity)
    )
    return read.withColumns(
        {MALFORMED: F.col(MALFORMED) | without_key, DELETES: F.col(DELETES) & ~without_key}
    )


def held_back_of(
    case: JudgedRun, name: str, output: Output, expected: DataFrame, stable_ends: Mapping[int, int]
) -> DataFrame:
    """The records of a topic from these offsets on, which only readers of uncommitted records can
    read."""
    raw = StoredOutput(path=case.data / name).frame(case.spark())
    behind = (
        (F.col("partition") == partition) & (F.col("offset") >= end)
        for partition, end in stable_ends.items()
    )
    held_back = raw.where(~F.col("committed") & reduce(or_, behind, F.lit(False)))
    return parse_records(
        held_back, expected, output.columns, _shape(output, expected).place, output.map
    )


def _shape(output: Output, expected: DataFrame) -> Shape:
    lane, position = (FILE_LANE, FILE_POSITION) if output.hdfs else (KAFKA_LANE, KAFKA_POSITION)
    return Shape(
        identity=output.identity,
        compare=output.compare,
        sequence=output.order,
        key=output.order_by if output.order else (),
        status=STATUS if STATUS in expected.columns else None,
        lane=lane,
        position=position,
        malformed=MALFORMED,
        raw=RAW,
        partition=None if output.hdfs else KAFKA_LANE[0],
        also=output.also,
        retracts=RETRACTS if output.retracts else None,
        deletes=DELETES if output.upsert else None,
    )
