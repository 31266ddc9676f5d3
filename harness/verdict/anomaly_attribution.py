"""Attribution of the anomalies of a run's output: all of them by their cause, and each example.

The broker's stamp of an anomalous record is the moment at which it was written. A lost record has
no stamp; the moment of its send counts. The interval of the run in which that moment is names the
cause: a fault, two checkpoints, the attempt of the writer. Records in files have no stamps; they
are attributed by the file's name, which holds the subtask that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.outputs import INPUT_FOLDER
from streamquake.harness.reconcile.caching import materialized
from streamquake.harness.reconcile.examples import with_python_types
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.result import Differences
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.verdict.anomalous_records import anomalous_records
from streamquake.harness.verdict.evidence.append_times import AppendTimesUnknown, append_times_of
from streamquake.harness.verdict.evidence.record_causes import (
    CauseInterval,
    cause_intervals,
    first_sent_indexes,
)
from streamquake.harness.verdict.evidence.sent_times import sent_ranges_of
from streamquake.harness.verdict.expected_output import STAMP
from streamquake.reports.record.outcome import Finding, class_of

MAX_GROUPS = 12
MAX_LANES = 4
"""The most partitions or files that a finding names."""
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
    anomalies = anomalous_records(wrong, {class_of(finding) for finding in findings})
    with materialized(anomalies) as unsent:
        rows = _with_send_indexes(case, unsent, wrong.shape)
        rows = rows.withColumn("interval", _interval(case, name, parts))
        groups = _groups_of(rows, wrong.shape, findings)
    return Attribution(
        groups=tuple(_largest(groups, causes, wrong.shape)),
        findings=tuple(_with_causes(case, groups, causes, wrong.shape, findings)),
    )


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


def _groups_of(rows: DataFrame, shape: Shape, findings: Sequence[Finding]) -> list[Row]:
    """The groups of anomalies with one class and one cause, the largest first. Each has its number
    of `records` and of `lanes`, the first lanes, and the rows that are `examples`.

    One query for both: each costs more to plan than to run.
    """
    rows = with_python_types(rows)
    identities = [_identity_of(finding, shape) for finding in findings]
    is_example = reduce(or_, map(_is_example, findings, identities), F.lit(False))
    example = F.struct(*map(quote_name, shape.identity), INDEX)
    lanes = F.sort_array(F.collect_set("lane"))
    groups = rows.groupBy("what", "interval").agg(
        F.count(F.lit(1)).alias("records"),
        F.size(lanes).alias("lanes"),
        F.slice(lanes, 1, MAX_LANES).alias("first_lanes"),
        F.collect_list(F.when(is_example, example)).alias("examples"),
    )
    return groups.orderBy(F.desc("records"), "what", "interval").collect()


def _largest(groups: Sequence[Row], causes: Sequence[str], shape: Shape) -> Iterator[Finding]:
    """The largest groups about which something is known, and how many more there are."""
    known = [group for group in groups if group.interval is not None or group.lanes]
    lane = shape.lane[0].removeprefix("_") + "s"
    for group in known[:MAX_GROUPS]:
        lanes = {lane: _first_lanes(group)} if group.lanes else {}
        detail = {"records": group.records, **lanes}
        yield Finding(what=group.what, where=_cause(group, causes), detail=detail)
    others = sorted(known[MAX_GROUPS:], key=lambda group: group.what)
    for what, of_class in groupby(others, key=lambda group: group.what):
        records = [group.records for group in of_class]
        more = f"in {len(records):,} more group{'s' if len(records) > 1 else ''} by cause"
        yield Finding(what=what, where=more, detail={"records": sum(records)})


def _first_lanes(group: Row) -> list[str]:
    more = group.lanes - len(group.first_lanes)
    return [*group.first_lanes, *([f"and {more} more"] if more > 0 else [])]


def _cause(group: Row, causes: Sequence[str]) -> str:
    if group.interval is None:
        return "at an unknown moment"
    return f"{'sent' if group.what == 'lost' else 'written'} {causes[group.interval]}"


def _with_causes(
    case: JudgedRun,
    groups: Sequence[Row],
    causes: Sequence[str],
    shape: Shape,
    findings: tuple[Finding, ...],
) -> list[Finding]:
    """The examples, each with its cause and the place of its record in the input topic."""

    def key(what: str, values: Iterable[Any]) -> tuple[str, ...]:
        return (what, *map(repr, values))

    # The copies of one record may be in several groups; the largest one, the first, counts.
    found = {
        key(group.what, (row[name] for name in shape.identity)): (group, row[INDEX])
        for group in reversed(groups)
        for row in group.examples
    }
    sources = _sources(case, [index for _, index in found.values() if index is not None])
    explained = []
    for finding in findings:
        named = key(class_of(finding), _identity_of(finding, shape).values())
        if named not in found:
            explained.append(finding)
            continue
        group, index = found[named]
        detail = {**finding.detail, "cause": _cause(group, causes)}
        if index in sources:
            detail["source"] = sources[index]
        explained.append(replace(finding, detail=detail))
    return explained


def _identity_of(finding: Finding, shape: Shape) -> dict[str, Any]:
    """Column -> value of the identity of an example."""
    return {name: finding.detail[shape.title(name)] for name in shape.identity}


def _is_example(finding: Finding, identity: Mapping[str, Any]) -> Column:
    """Whether a row has the class and the identity of a finding. The values are compared in their
    types: the text of a number or a truth value differs between Python and Spark."""
    same = F.col("what") == class_of(finding)
    for name, value in identity.items():
        same &= F.col(quote_name(name)).eqNullSafe(F.lit(value))
    return same


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
