"""The records that a run's outputs should hold: the job's expectation over the records sent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import or_
from threading import Lock

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
    TABLE_LANE,
    TABLE_POSITION,
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

PLACES = {
    "kafka": (KAFKA_LANE, KAFKA_POSITION),
    "hdfs": (FILE_LANE, FILE_POSITION),
    "s3": (FILE_LANE, FILE_POSITION),
    "table": (TABLE_LANE, TABLE_POSITION),
}
"""Kind of an output -> the columns with the place of a record."""
STATUS = "status"
STAMP = "_timestamp_ms"
RETRACTS, DELETES = "_retracts", "_deletes"


def register_sent(case: JudgedRun) -> None:
    """Create the view `sent` of the records that the job may have read."""
    possible_input(case).createOrReplaceTempView("sent")


def possible_input(case: JudgedRun) -> DataFrame:
    """The records that the job may have read, with the columns of the workload.

    The input topic, where it was read, settles the sends of unknown result of a load whose records
    have their index: a record in it counts as acknowledged, and the job never read the others.
    """
    workload = case.experiment.workload
    sent = workload.sent_frame(case.spark(), case.history, case.experiment.seed, case.data)
    records = sent.where(F.col(STATUS) != "failed")
    topic = StoredOutput(path=case.data / INPUT_FOLDER)
    if topic.complete and workload.generated:
        if damage := topic.lost_files() or topic.miscount():
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
    read = StoredOutput(path=case.data / INPUT_FOLDER).complete
    settled = read and case.experiment.workload.generated
    return not settled and (interrupted or count_sends(case, "unknown") > 0)


def has_status(expected: DataFrame, columns: Collection[str]) -> bool:
    """Whether each of the expected records represents one send and has its `STATUS`. An output may
    have a column `status` of its own, among its `columns`."""
    return STATUS in expected.columns and STATUS not in columns


class Expectations(Mapping[str, DataFrame]):
    """The expected records of each output that declares an expectation, computed at the first
    access, from any thread. An access raises BadInput, or pyspark's AnalysisException, for a wrong
    expectation."""

    def __init__(self, case: JudgedRun, stack: ExitStack) -> None:
        promise = case.experiment.promise
        self._queries = {
            name: query
            for name, output in promise.outputs.items()
            if (query := output.expected or promise.expected) is not None
        }
        self._frames: dict[str, DataFrame] = {}
        self._case, self._stack = case, stack
        self._lock = Lock()

    def __getitem__(self, name: str) -> DataFrame:
        query = self._queries[name]
        with self._lock:
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
    laid_out = expected_of(output, expected)
    records = count_sends(case, "acknowledged")
    # Reading a record costs more than comparing it, and reconciliation scans it at least three
    # times.
    with (
        persisted(actual),
        reconciled(laid_out, actual, shape, record_estimate=records) as result,
    ):
        yield result


def column_names(*outputs: Output) -> dict[str, str]:
    """The columns of some outputs -> their names in the frames of a comparison: a job may call a
    column as one that the comparison adds, such as `lost`."""
    columns = dict.fromkeys(name for output in outputs for name in output.columns)
    return {name: f"c{number}" for number, name in enumerate(columns)}


def expected_of(output: Output, expected: DataFrame) -> DataFrame:
    """The expected records as they are compared."""
    return with_canonical_texts(_laid_out(expected, column_names(output)))


def _laid_out(expected: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """The expected records, with the columns of an output under these names, and `STATUS`."""
    columns = [F.col(quote_name(name)).alias(own) for name, own in names.items()]
    status = [STATUS] if has_status(expected, names) else []
    return expected.select(*columns, *status)


def actual_of(
    case: JudgedRun,
    name: str,
    output: Output,
    expected: DataFrame,
    *,
    names: Mapping[str, str] | None = None,
    extra: tuple[str, ...] = (),
) -> tuple[DataFrame, Shape]:
    """An output as it was read, with the columns of its expected records under `names`, and how to
    compare the two. `extra` names further columns of the reading, each with an underscore in
    front."""
    raw = StoredOutput(path=case.data / name).frame(case.spark())
    committed = raw.where("committed") if output.kafka else raw
    names = column_names(output) if names is None else names
    shape = _shape(output, expected, names)
    read = _parse(committed, expected, output, names, (*shape.place, *extra))
    return (_reject_deletes_without_key(read, shape) if output.upsert else read), shape


def _parse(
    raw: DataFrame,
    expected: DataFrame,
    output: Output,
    names: Mapping[str, str],
    place: tuple[str, ...],
) -> DataFrame:
    """Parse the columns of an output under these names; of a changelog also `RETRACTS`."""
    promised_frame = _laid_out(expected, {name: names[name] for name in output.columns})
    columns = [names[name] for name in output.columns]
    expressions = {names[name]: text for name, text in output.map.items()}
    if output.retracts is not None:
        promised_frame = promised_frame.withColumn(RETRACTS, F.lit(False))
        columns.append(RETRACTS)
        expressions[RETRACTS] = output.retracts
    return parse_records(
        raw,
        promised_frame,
        columns,
        place,
        expressions,
        fields={name: column for column, name in names.items()},
        deletes=DELETES if output.upsert else None,
    )


def _reject_deletes_without_key(read: DataFrame, shape: Shape) -> DataFrame:
    """Mark a delete without a key as malformed."""
    without_key = deletes_without_key(F.col(DELETES), map(F.col, shape.identity))
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
    names = column_names(output)
    place = _shape(output, expected, names).place
    # A deletion or a retraction behind that offset is no lost record.
    plain = output.model_copy(update={"upsert": False, "retracts": None})
    return _parse(held_back, expected, plain, names, place)


def _shape(output: Output, expected: DataFrame, names: Mapping[str, str]) -> Shape:
    def own(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names[name] for name in columns)

    lane, position = PLACES[output.kind]
    return Shape(
        identity=own(output.identity),
        compare=own(output.compare),
        sequence=names[output.order] if output.order else None,
        key=own(output.order_by) if output.order else (),
        status=STATUS if has_status(expected, names) else None,
        lane=lane,
        position=position,
        malformed=MALFORMED,
        raw=RAW,
        partition=KAFKA_LANE[0] if output.kafka else None,
        also=output.also,
        retracts=RETRACTS if output.retracts else None,
        deletes=DELETES if output.upsert else None,
        names={name: column for column, name in names.items()},
    )
