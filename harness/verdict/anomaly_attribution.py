"""Attribution of the anomalies of a run's output: all of them by their cause, and each example.

An anomaly that is there was written at the moment its broker stamped it with; one that is lost was
to be written after it was sent. Which interval of the run that was shows what went on then: a
fault, the interval between two checkpoints, the attempt that wrote. Files have no moments; they are
attributed by their names, which hold the subtask that wrote them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import INPUT_FOLDER
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import with_python_types
from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.order import first_copies, records_out_of_order, without_phantoms
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.verdict.evidence.append_times import AppendTimesUnknown, appended
from streamquake.harness.verdict.evidence.record_causes import CauseInterval, first_sent, intervals
from streamquake.harness.verdict.evidence.sent_times import sent_ranges_of
from streamquake.harness.verdict.expected_output import STAMP, OutputAnomalies
from streamquake.reports.record.outcome import Finding

MAX_GROUPS = 12
MAX_LANES = 4
"""Partitions or files of one cause that are named."""
REORDERED = "reordered"
INDEX = "_index"
"""Which send a record was; an output may well have a column `index` of its own."""


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """`groups` tell of all anomalies by their cause; `findings` are the examples with theirs."""

    groups: tuple[Finding, ...]
    findings: tuple[Finding, ...]


def attributed(
    case: JudgedRun, name: str, wrong: OutputAnomalies, findings: tuple[Finding, ...]
) -> Attribution:
    """What is wrong with one output, of which `findings` are examples, by what caused it."""
    parts = intervals(case.history)
    causes = [part.cause for part in parts]
    order = any(finding.what == REORDERED for finding in findings)
    anomalies = _anomalies(case, wrong, order=order)
    with persisted(anomalies.withColumn("interval", _interval(case, name, parts))) as rows:
        return Attribution(
            groups=tuple(_groups(rows, causes, wrong.shape)),
            findings=tuple(_explained(case, rows, causes, wrong.shape, findings)),
        )


def _anomalies(case: JudgedRun, wrong: OutputAnomalies, *, order: bool) -> DataFrame:
    """One row for each anomalous record: identity, `what`, `lane`, `STAMP`, and `INDEX` where it is
    known which send it was. Records out of order are among them where `order` asks for them."""
    found, shape = wrong.found, wrong.shape
    unknown = {name: F.lit(None).cast(kind) for name, kind in (("lane", "string"), (STAMP, "long"))}
    rows = found.where("lost > 0").select(*shape.identity, F.lit("lost").alias("what"))
    rows = rows.withColumns(unknown)
    for there in (_there(wrong), *([_reordered(wrong)] if order else [])):
        if STAMP not in there.columns:
            there = there.withColumn(STAMP, unknown[STAMP])
        there = there.withColumn("lane", F.col(shape.lane[0]).cast("string"))
        rows = rows.unionByName(there.select(*rows.columns))
    sent = _sent(case, shape)
    if sent is None:
        return rows.withColumn(INDEX, F.lit(None).cast("bigint"))
    return rows.join(sent, list(shape.identity), "left")


def _there(wrong: OutputAnomalies) -> DataFrame:
    """The records that are there and should not be, or not so: of copies the last ones, of a record
    that was changed the last copy."""
    shape = wrong.shape
    alien = wrong.found.where("duplicated > 0 OR phantom > 0 OR changed > 0")
    counts = [F.col(f"f.{name}") for name in ("duplicated", "phantom", "changed")]
    rows = (
        wrong.actual.alias("a")
        .join(alien.alias("f"), same_values(shape.identity, "a", "f"))
        .select("a.*", *counts)
    )
    copies = Window.partitionBy(*shape.identity)
    rows = rows.withColumn("turn", F.row_number().over(copies.orderBy(F.desc(shape.place[-1]))))
    classes = {
        "duplicated": F.col("turn") <= F.col("duplicated"),
        "phantom": F.col("phantom") > 0,
        "changed": (F.col("changed") > 0) & (F.col("turn") == 1),
    }
    named = F.array(*(F.when(there, F.lit(name)) for name, there in classes.items()))
    return rows.withColumn("what", F.explode(F.array_compact(named)))


def _reordered(wrong: OutputAnomalies) -> DataFrame:
    """The records that came after a later one of their key."""

    shape = wrong.shape
    real = without_phantoms(wrong.actual, wrong.found.where("phantom > 0"), shape)
    places = records_out_of_order(first_copies(real, shape), shape).select(*shape.place)
    return wrong.actual.join(places, list(shape.place), "semi").withColumn("what", F.lit(REORDERED))


def _sent(case: JudgedRun, shape: Shape) -> DataFrame | None:
    """Identity, `INDEX`: which send a record was, where its identity says so."""
    sent = case.spark().table("sent")
    if set(shape.identity) != {"key", "seq"} or not {"key", "seq", "index"} <= set(sent.columns):
        return None
    return sent.select("key", "seq", F.col("index").alias(INDEX))


def _interval(case: JudgedRun, name: str, parts: Sequence[CauseInterval]) -> Column:
    """Which interval a record was written in, by its stamp, or if lost was noted as sent in, by its
    index; null where these say nothing."""
    sent = _turn(F.col(INDEX), first_sent(sent_ranges_of(case.history), parts))
    try:
        output = appended(case, name)
    except AppendTimesUnknown:
        written = F.lit(None).cast("int")
    else:
        written = _turn(F.col(STAMP), [output.ms(part.from_ns) for part in parts])
    return F.when(F.col("what") == "lost", sent).otherwise(written)


def _turn(value: Column, begins: Sequence[int]) -> Column:
    """The last of some growing numbers that a value is not below; null for null."""
    # One literal: a term for each of thousands of checkpoints is deeper than Spark's stack.
    later = F.from_json(F.lit(str(list(begins[1:]))), "array<bigint>")
    return F.when(value.isNotNull(), F.size(F.filter(later, lambda begin: begin <= value)))


def _groups(rows: DataFrame, causes: Sequence[str], shape: Shape) -> list[Finding]:
    by_cause = rows.groupBy("what", "interval").agg(
        F.count(F.lit(1)).alias("records"), F.sort_array(F.collect_set("lane")).alias("lanes")
    )
    most = by_cause.orderBy(F.desc("records"), "what", "interval").take(MAX_GROUPS)
    lane = shape.lane[0].removeprefix("_") + "s"
    return [
        Finding(
            what=row.what,
            where=_cause(row, causes),
            detail={"records": row.records, **({lane: _few(row.lanes)} if row.lanes else {})},
        )
        for row in most
        if row.interval is not None or row.lanes
    ]


def _few(lanes: Sequence[str]) -> list[str]:
    more = len(lanes) - MAX_LANES
    return [*lanes[:MAX_LANES], *([f"and {more} more"] if more > 0 else [])]


def _cause(row: Row, causes: Sequence[str]) -> str:
    if row.interval is None:
        return "at an unknown moment"
    return f"{'sent' if row.what == 'lost' else 'written'} {causes[row.interval]}"


def _explained(
    case: JudgedRun,
    rows: DataFrame,
    causes: Sequence[str],
    shape: Shape,
    findings: tuple[Finding, ...],
) -> list[Finding]:
    """The examples, each with its cause and the place in the input that it came from."""

    def key(what: str, values: Any) -> tuple[str, ...]:
        return (what.partition(",")[0], *(str(values[name]) for name in shape.identity))

    rows = with_python_types(rows)
    names = sorted({"\0".join(key(f.what, f.detail)) for f in findings})
    message = F.concat_ws(
        "\0",
        "what",
        *(F.coalesce(F.col(name).cast("string"), F.lit("None")) for name in shape.identity),
    )
    known = {key(row.what, row): row for row in rows.where(message.isin(names)).collect()}
    sources = _sources(case, [row[INDEX] for row in known.values() if row[INDEX] is not None])
    explained = []
    for finding in findings:
        row = known.get(key(finding.what, finding.detail))
        if row is None:
            explained.append(finding)
            continue
        detail = {**finding.detail, "cause": _cause(row, causes)}
        if row[INDEX] in sources:
            detail["source"] = sources[row[INDEX]]
        explained.append(replace(finding, detail=detail))
    return explained


def _sources(case: JudgedRun, indexes: Sequence[int]) -> dict[int, str]:
    """Index -> where the record stands in the input topic, where that was read."""
    stored = StoredOutput(path=case.data / INPUT_FOLDER)
    if not indexes or not stored.complete:
        return {}
    topic = stored.frame(case.spark())
    index = F.from_json("value", "index bigint")["index"].alias("index")
    rows = topic.select(index, "partition", "offset").where(F.col("index").isin(list(indexes)))
    return {
        row["index"]: f"partition {row.partition}, offset {row.offset}" for row in rows.collect()
    }
