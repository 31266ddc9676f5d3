"""Attribution of the anomalies of a run's output: all of them by their cause, and each example.

The broker's stamp of an anomalous record is the moment at which it was written. A lost record has
no stamp; the moment of its send counts. The interval of the run in which that moment is names the
cause: a fault, two checkpoints, the attempt of the writer. Records in files have no stamps; they
are attributed by the file's name, which holds the subtask that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import INPUT_FOLDER
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import with_python_types
from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.result import Differences
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.verdict.evidence.append_times import AppendTimesUnknown, append_times_of
from streamquake.harness.verdict.evidence.record_causes import (
    CauseInterval,
    cause_intervals,
    first_sent_indexes,
)
from streamquake.harness.verdict.evidence.sent_times import sent_ranges_of
from streamquake.harness.verdict.expected_output import STAMP
from streamquake.reports.record.outcome import Finding

MAX_GROUPS = 12
MAX_LANES = 4
"""The most partitions or files that a finding names."""
REORDERED = "reordered"
INDEX = "_index"
"""The index of a record's send; an output may have a column `index` of its own."""


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """`groups` count all anomalies by cause; `findings` are the examples, each with its cause."""

    groups: tuple[Finding, ...]
    findings: tuple[Finding, ...]


def attribute_anomalies(
    case: JudgedRun, name: str, wrong: Differences, findings: tuple[Finding, ...]
) -> Attribution:
    """The causes of one output's anomalies, of which `findings` are examples."""
    parts = cause_intervals(case.history)
    causes = [part.cause for part in parts]
    order = any(finding.what == REORDERED for finding in findings)
    anomalies = _anomalies(wrong, order=order)
    with (
        persisted(anomalies) as unsent,
        persisted(
            _with_send_indexes(case, unsent, wrong.shape).withColumn(
                "interval", _interval(case, name, parts)
            )
        ) as rows,
    ):
        return Attribution(
            groups=tuple(_groups(rows, causes, wrong.shape)),
            findings=tuple(_with_causes(case, rows, causes, wrong.shape, findings)),
        )


def _anomalies(wrong: Differences, *, order: bool) -> DataFrame:
    """One row for each anomalous record: identity, `what`, `lane` and `STAMP`. `order` includes
    records out of order."""
    found, shape = wrong.found, wrong.shape
    unknown = {name: F.lit(None).cast(kind) for name, kind in (("lane", "string"), (STAMP, "long"))}
    rows = found.where("lost > 0").select(*shape.identity, F.lit("lost").alias("what"))
    rows = rows.withColumns(unknown)
    written = [_anomalous_records(wrong)]
    if order and wrong.out_of_order is not None:
        written.append(_out_of_order(wrong, wrong.out_of_order))
    for present in written:
        if STAMP not in present.columns:
            present = present.withColumn(STAMP, unknown[STAMP])
        present = present.withColumn("lane", F.col(shape.lane[0]).cast("string"))
        rows = rows.unionByName(present.select(*rows.columns))
    return rows


def _anomalous_records(wrong: Differences) -> DataFrame:
    """The records that were written and are wrong: duplicated (the last copies), invented, or
    changed (the last copy)."""
    shape = wrong.shape
    wrong_identities = wrong.found.where("duplicated > 0 OR phantom > 0 OR changed > 0")
    counts = [F.col(f"f.{name}") for name in ("duplicated", "phantom", "changed")]
    rows = (
        wrong.suspects.alias("a")
        .join(wrong_identities.alias("f"), same_values(shape.identity, "a", "f"))
        .select("a.*", *counts)
    )
    written = [STAMP] if STAMP in rows.columns else []
    last_first = [F.desc(name) for name in (*written, *reversed(shape.place))]
    copies = Window.partitionBy(*shape.identity).orderBy(*last_first)
    rows = rows.withColumn("turn", F.row_number().over(copies))
    classes = {
        "duplicated": F.col("turn") <= F.col("duplicated"),
        "phantom": F.col("phantom") > 0,
        "changed": (F.col("changed") > 0) & (F.col("turn") == 1),
    }
    named = F.array(*(F.when(present, F.lit(name)) for name, present in classes.items()))
    return rows.withColumn("what", F.explode(F.array_compact(named)))


def _out_of_order(wrong: Differences, places: DataFrame) -> DataFrame:
    """The records at the places of those that were written after a later record of their key."""
    names = list(wrong.shape.place)
    records = wrong.actual.join(places.select(*names), names, "semi")
    return records.withColumn("what", F.lit(REORDERED))


def _with_send_indexes(case: JudgedRun, rows: DataFrame, shape: Shape) -> DataFrame:
    """Rows with the `INDEX` of their sends; null where the identity does not show it."""
    sent = case.spark().table("sent")
    columns = {shape.names.get(name, name): name for name in shape.identity}
    if columns.keys() != {"key", "seq"} or not {"key", "seq", "index"} <= set(sent.columns):
        return rows.withColumn(INDEX, F.lit(None).cast("bigint"))
    names = list(shape.identity)
    # The few sends that are looked up come first, so that the others are not sorted for a join.
    of_sends = (F.col(column).alias(name) for column, name in columns.items())
    sends = sent.select(*of_sends, F.col("index").alias(INDEX))
    wanted = sends.join(rows.select(*names).distinct(), names, "semi")
    return rows.join(wanted, names, "left")


def _interval(case: JudgedRun, name: str, parts: Sequence[CauseInterval]) -> Column:
    """The interval in which a record was written, by its stamp, or, of a lost record, in which its
    send was recorded, by its index; null where neither is known."""
    sent = _last_not_above(F.col(INDEX), first_sent_indexes(sent_ranges_of(case.history), parts))
    try:
        output = append_times_of(case, name)
    except AppendTimesUnknown:
        written = F.lit(None).cast("int")
    else:
        written = _last_not_above(F.col(STAMP), [output.ms(part.from_ns) for part in parts])
    return F.when(F.col("what") == "lost", sent).otherwise(written)


def _last_not_above(value: Column, starts: Sequence[int]) -> Column:
    """The position of the last of these ascending numbers that is not above the value; null for
    null."""
    # One literal: a term for each of thousands of checkpoints is deeper than Spark's stack.
    later = F.from_json(F.lit(str(list(starts[1:]))), "array<bigint>")
    return F.when(value.isNotNull(), F.size(F.filter(later, lambda start: start <= value)))


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
            detail={
                "records": row.records,
                **({lane: _first_lanes(row.lanes)} if row.lanes else {}),
            },
        )
        for row in most
        if row.interval is not None or row.lanes
    ]


def _first_lanes(lanes: Sequence[str]) -> list[str]:
    more = len(lanes) - MAX_LANES
    return [*lanes[:MAX_LANES], *([f"and {more} more"] if more > 0 else [])]


def _cause(row: Row, causes: Sequence[str]) -> str:
    if row.interval is None:
        return "at an unknown moment"
    return f"{'sent' if row.what == 'lost' else 'written'} {causes[row.interval]}"


def _with_causes(
    case: JudgedRun,
    rows: DataFrame,
    causes: Sequence[str],
    shape: Shape,
    findings: tuple[Finding, ...],
) -> list[Finding]:
    """The examples, each with its cause and the place of its record in the input topic."""

    def key(what: str, values: Iterable[Any]) -> tuple[str, ...]:
        return (what.partition(",")[0], *map(str, values))

    def example_key(finding: Finding) -> tuple[str, ...]:
        return key(finding.what, (finding.detail[shape.title(name)] for name in shape.identity))

    rows = with_python_types(rows)
    names = sorted({"\0".join(example_key(f)) for f in findings})
    message = F.concat_ws(
        "\0",
        "what",
        *(F.coalesce(F.col(name).cast("string"), F.lit("None")) for name in shape.identity),
    )
    row_of = {
        key(row.what, (row[name] for name in shape.identity)): row
        for row in rows.where(message.isin(names)).collect()
    }
    sources = _sources(case, [row[INDEX] for row in row_of.values() if row[INDEX] is not None])
    explained = []
    for finding in findings:
        row = row_of.get(example_key(finding))
        if row is None:
            explained.append(finding)
            continue
        detail = {**finding.detail, "cause": _cause(row, causes)}
        if row[INDEX] in sources:
            detail["source"] = sources[row[INDEX]]
        explained.append(replace(finding, detail=detail))
    return explained


def _sources(case: JudgedRun, indexes: Sequence[int]) -> dict[int, str]:
    """Index -> partition and offset of the record in the input topic, where that was read."""
    stored = StoredOutput(path=case.data / INPUT_FOLDER)
    if not indexes or not stored.complete:
        return {}
    topic = stored.frame(case.spark())
    index = F.from_json("value", "index bigint")["index"].alias("index")
    rows = topic.select(index, "partition", "offset").where(F.col("index").isin(list(indexes)))
    return {
        row["index"]: f"partition {row.partition}, offset {row.offset}" for row in rows.collect()
    }
