"""What a run's outputs should hold: the job's expectation over what was really sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import INPUT_FOLDER, Output
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.final_state import final_records
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
from streamquake.harness.reconcile.reconcile import all_anomalies, reconcile
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.reconcile.sql.safe_sql import safe_query
from streamquake.harness.reconcile.upserts import deletes_without_key
from streamquake.harness.reconcile.values.promised import with_canonical_texts
from streamquake.reports.record.run_events import RecordsSent, WorkloadDone

STATUS = "status"
STAMP = "_timestamp_ms"
RETRACTS, DELETES = "_retracts", "_deletes"


@dataclass(frozen=True, kw_only=True)
class OutputAnomalies:
    """All that is wrong with an output, where `Reconciled` has counts and examples."""

    found: DataFrame
    """One row per identity that is in a class, with how often it is in each."""
    actual: DataFrame
    """The records that stand, as they were read; those of a topic with their `STAMP`."""
    shape: Shape


def register_sent(case: JudgedRun) -> None:
    """Make the view `sent` of what the job may have been given."""
    given(case).createOrReplaceTempView("sent")


def given(case: JudgedRun) -> DataFrame:
    """What the job may have been given: a row per record, with the columns of the workload.

    Sends of unknown result are settled by the input topic where it was read: what stands there
    counts as acknowledged, the rest was never given to the job.
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


def sends(case: JudgedRun, status: str) -> int:
    """How many sends are recorded to have ended so."""
    return sum(sent.count for sent in case.history.of(RecordsSent) if sent.status == status)


def unsettled(case: JudgedRun) -> bool:
    """Whether it is not known of some sends if the job was given them."""
    cut_off = case.history.first(WorkloadDone) is None
    settled = StoredOutput(path=case.data / INPUT_FOLDER).complete
    return not settled and (cut_off or sends(case, "unknown") > 0)


class Expectations(Mapping[str, DataFrame]):
    """The expected records of each output that declares any, made when they are asked for. Raises
    then what is wrong with that output's expectation: BadInput, or pyspark's AnalysisException."""

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
    """What each output should hold; those of one query are computed once."""
    with ExitStack() as stack:
        yield Expectations(case, stack)


def reconciled(
    case: JudgedRun, name: str, output: Output, expected: DataFrame
) -> ReconciliationResult:
    """One output, as it was read, against what it should hold.

    Raises pyspark's AnalysisException when the expectation lacks a column that the output names.
    """
    actual, shape = actual_of(case, name, output, expected)
    # Reading a record costs more than comparing it, and it is looked at three times at least.
    with persisted(actual):
        return reconcile(
            with_canonical_texts(expected),
            actual,
            shape,
            record_estimate=sends(case, "acknowledged"),
        )


@contextmanager
def anomalous(
    case: JudgedRun, name: str, output: Output, expected: DataFrame
) -> Iterator[OutputAnomalies]:
    """All that is wrong with one output, found once for all that is reported of it in the block."""
    stamped = (STAMP,) if output.kafka else ()
    actual, shape = actual_of(case, name, output, expected, extra=stamped)
    with (
        persisted(actual),
        final_records(actual, shape) as stands,
        persisted(all_anomalies(with_canonical_texts(expected), stands, shape)) as found,
    ):
        yield OutputAnomalies(found=found, actual=stands, shape=shape)


def actual_of(
    case: JudgedRun, name: str, output: Output, expected: DataFrame, *, extra: tuple[str, ...] = ()
) -> tuple[DataFrame, Shape]:
    """An output as it was read, by the columns of what it should hold, and how to compare them.
    `extra` names further columns of the reading, with an underscore before."""
    raw = StoredOutput(path=case.data / name).frame(case.spark())
    committed = raw.where("committed") if output.kafka else raw
    shape = _shape(output, expected)
    place = (*shape.place, *extra)
    if output.retracts is None:
        deletes = DELETES if output.upsert else None
        read = parse_records(
            committed, expected, output.columns, place, output.map, deletes=deletes
        )
        return (_aimed(read, output) if deletes else read), shape
    like = expected.withColumn(RETRACTS, F.lit(False))
    how = {**output.map, RETRACTS: output.retracts}
    return parse_records(committed, like, (*output.columns, RETRACTS), place, how), shape


def _aimed(read: DataFrame, output: Output) -> DataFrame:
    """With records malformed that delete, and do not say what."""
    unaimed = deletes_without_key(
        F.col(DELETES), (F.col(quote_name(name)) for name in output.identity)
    )
    return read.withColumns(
        {MALFORMED: F.col(MALFORMED) | unaimed, DELETES: F.col(DELETES) & ~unaimed}
    )


def held_back_of(
    case: JudgedRun, name: str, output: Output, expected: DataFrame, stable_ends: Mapping[int, int]
) -> DataFrame:
    """The records of a topic at and behind these offsets, which only readers of uncommitted records
    see."""
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
