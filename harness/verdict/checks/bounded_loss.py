"""Bounded loss: lost and duplicated records belong to the failed tasks, and to the time of the
failure.

For settings that trade records for availability, such as a failover that restarts single tasks
without rewinding the others. They are judged by what they still promise: no record is lost or
duplicated elsewhere or at another time, and no record is written that was not sent.

The partition of a record shows its subtask: with `'sink.partitioner' = 'fixed'` subtask n of
Flink's sink writes to partition n, modulo the number of partitions (FlinkFixedPartitioner), and a
key always goes to the subtask that it went to before the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.examples import presented
from streamquake.harness.reconcile.reading.promised_columns import parse_records
from streamquake.harness.reconcile.reconcile import missing_or_repeated_records
from streamquake.harness.reconcile.result import (
    NOTHING_EXPECTED,
    ReconciliationResult,
    unjudged_reasons,
)
from streamquake.harness.verdict.evidence.append_times import (
    AppendedRecords,
    AppendTimesUnknown,
    append_times_of,
)
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.loss_scope import LossScope, LossScopeUnknown, scopes_of
from streamquake.harness.verdict.evidence.sink_tables import sinks_of
from streamquake.harness.verdict.expected_output import (
    actual_of,
    column_names,
    expectations,
    expected_of,
    has_status,
    has_unsettled_sends,
    reconciled_output,
    register_sent,
)
from streamquake.reports.record.outcome import CheckResult, Finding, class_of
from streamquake.topologies.limits import ZeroOrMore

IN_SCOPE, UNATTRIBUTED = "in scope", "unattributed"
OUTSIDE = ("outside the failed subtask", "outside the window")
NEVER_ALLOWED = ("phantom", "changed", "reordered")
EXPLAINED_BY = {"gap": "lost", "regression": "duplicated"}
"""A lost record is one missing number at most, and an extra copy one step back at most."""
EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class AttributedRecords:
    """How many records were lost or duplicated, by the place they belong to, with examples."""

    counts: Mapping[str, int]
    findings: tuple[Finding, ...]

    def of(self, place: str) -> int:
        return self.counts.get(place, 0)


@checks.register
class BoundedLoss(Check):
    """Held when every lost or duplicated record belongs to a subtask that restarted and was sent
    between the last checkpoint before the restart and the moment the subtask ran again. Each
    restart of each subtask has a window of its own.

    A class that the output requests with `also` is violated too, as is an unmatched retraction,
    except for gaps that the lost records leave, and regressions that the extra copies are.

    A job with state over lost records writes other totals afterwards: in its promise, name as
    `compare` only columns that depend on the record alone.
    """

    name: ClassVar[str] = "bounded_loss"
    needs_keys: ClassVar[bool] = True
    classes: ClassVar[tuple[str, ...]] = (
        "too many",
        *OUTSIDE,
        *NEVER_ALLOWED,
        "gap",
        "regression",
        "unmatched_retraction",
        "wrong_partition",
    )

    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""
    slack_s: ZeroOrMore = 2.0
    """Seconds by which records may have been sent earlier or later, since they were in flight."""
    at_most: Annotated[int, Field(ge=0)] | None = None
    """How many records may be lost or duplicated in all."""
    vertex: str | None = None
    """Part of the name of the vertex whose subtasks write the output; the one with a writer, or a
    sink, in its name when left out."""
    spread: bool = False
    """Whether the records of each subtask of `vertex` go to every partition, as those of a source
    or of a step before a keyed exchange. Then only their time is judged."""

    def check(self, case: JudgedRun) -> CheckResult:
        try:
            output = append_times_of(case, self.output)
            _reject_other_partitioners(case, output)
            scopes = scopes_of(
                case.history, self.vertex, output.partitions, self.slack_s, self.spread
            )
        except (AppendTimesUnknown, LossScopeUnknown) as reason:
            return self.undecided(str(reason))
        if case.experiment.job is not None and not_drained(case.history):
            return self.undecided(
                f"{output.name}: the job had not committed everything, so missing records may "
                "still arrive"
            )
        return self._reconcile(case, output, scopes)

    def _reconcile(
        self, case: JudgedRun, output: AppendedRecords, scopes: tuple[LossScope, ...]
    ) -> CheckResult:
        promised = case.experiment.promise.outputs[output.name]
        register_sent(case)
        with expectations(case) as all_expected:
            if (expected := all_expected.get(output.name)) is None:
                return self.undecided(f"{output.name}: it has no expected records")
            if not has_status(expected, promised.columns) and has_unsettled_sends(case):
                return self.undecided(f"{output.name}: it depends on sends of unknown result")
            with reconciled_output(case, output.name, promised, expected) as found:
                return self._judge_found(case, output, expected, scopes, found)

    def _judge_found(
        self,
        case: JudgedRun,
        output: AppendedRecords,
        expected: DataFrame,
        scopes: tuple[LossScope, ...],
        found: ReconciliationResult,
    ) -> CheckResult:
        if found.proves_nothing:
            return self.undecided(f"{output.name}: {NOTHING_EXPECTED}")
        if not found.counts["lost"] and not found.counts["duplicated"]:
            return self._message(output, scopes, found, AttributedRecords(counts={}, findings=()))
        identity = case.experiment.promise.outputs[output.name].identity
        if not {"key", "seq"} <= {*identity}:
            return self.undecided(
                f"{output.name}: its records are identified by {', '.join(identity)}, "
                "and only with key and seq can one be traced to its send"
            )
        return self._message(output, scopes, found, _attribute(case, output, expected, scopes))

    def _message(
        self,
        output: AppendedRecords,
        scopes: tuple[LossScope, ...],
        found: ReconciliationResult,
        parts: AttributedRecords,
    ) -> CheckResult:
        affected_records = (found.counts["lost"] or 0) + (found.counts["duplicated"] or 0)
        figures = _figures(scopes, found, parts)
        forbidden = _forbidden(found.counts)
        violations = [f"{count:,} {name}" for name, count in forbidden.items()]
        violations += [f"{parts.of(place):,} {place}" for place in OUTSIDE if parts.of(place)]
        forbidden_findings = (presented(f) for f in found.findings if class_of(f) in forbidden)
        findings = (*parts.findings, *forbidden_findings)
        lost = f"{found.counts['lost']:,} lost and {found.counts['duplicated']:,} duplicated"
        if violations:
            message = f"{', '.join(violations)} in {output.name} ({lost})"
            return self.violated(message, findings, **figures)
        if self.at_most is not None and affected_records > self.at_most:
            finding = Finding(what="too many", where=output.name, detail=figures)
            message = f"{lost} in {output.name}, {self.at_most:,} allowed"
            return self.violated(message, (finding,), **figures)
        if not figures["affected_partitions"]:
            return self.undecided(
                f"{output.name}: no subtask restarted, so that nothing could be lost", (), **figures
            )
        if parts.of(UNATTRIBUTED):
            return self.undecided(
                f"{parts.of(UNATTRIBUTED):,} of {affected_records:,} records in {output.name} "
                "cannot be attributed: before the fault their keys had no partition, or several",
                (),
                **figures,
            )
        if missing := unjudged_reasons(found.counts):
            return self.undecided(f"{output.name}: {'; '.join(missing)}", (), **figures)
        return self.held(
            f"{lost} in {output.name}, all of restarted subtasks and of that time", **figures
        )


def _forbidden(counts: Mapping[str, int | None]) -> dict[str, int]:
    """The anomalies that no lost and no duplicated record explains, by class."""
    explained = {name: counts[reason] or 0 for name, reason in EXPLAINED_BY.items()}
    return {
        name: count
        for name in (*NEVER_ALLOWED, *anomalies)
        if (count := counts.get(name) or 0) > explained.get(name, 0)
    }


def _figures(
    scopes: tuple[LossScope, ...], found: ReconciliationResult, parts: AttributedRecords
) -> dict[str, int | float | None]:
    subtask, window = OUTSIDE
    return {
        **{name: found.counts[name] for name in ("lost", "duplicated", *NEVER_ALLOWED)},
        **{name: found.counts[name] for name in anomalies if name in found.counts},
        "in_scope": parts.of(IN_SCOPE),
        "outside_subtask": parts.of(subtask),
        "outside_window": parts.of(window),
        "unattributed": parts.of(UNATTRIBUTED),
        "window_s": round(max(scope.seconds for scope in scopes), 3),
        "affected_partitions": len(
            {partition for scope in scopes for partition in scope.partitions}
        ),
    }


def _attribute(
    case: JudgedRun, output: AppendedRecords, expected: DataFrame, scopes: tuple[LossScope, ...]
) -> AttributedRecords:
    """The lost and duplicated records, by the place they belong to."""
    promised = case.experiment.promise.outputs[output.name]
    actual, shape = actual_of(case, output.name, promised, expected)
    sent = case.spark().table("sent").select("key", "seq", F.col("index").alias("_index"))
    names = column_names(promised)
    identity = (F.col(names[column]).alias(column) for column in ("key", "seq"))
    placed = (
        missing_or_repeated_records(expected_of(promised, expected), actual, shape)
        .select(*identity, "lost", "duplicated")
        .join(sent, ["key", "seq"], "left")
        .join(
            _home_partitions(output, expected, min(scope.injected_ns for scope in scopes)),
            "key",
            "left",
        )
        .withColumn("place", F.expr(_place(scopes)))
    )
    with persisted(placed):
        sums = placed.groupBy("place").agg(F.sum(F.col("lost") + F.col("duplicated")).alias("n"))
        counts = {row.place: int(row.n) for row in sums.collect()}
        return AttributedRecords(counts=counts, findings=tuple(_examples(placed, counts, output)))


def _home_partitions(output: AppendedRecords, expected: DataFrame, injected_ns: int) -> DataFrame:
    """key, home: the only partition with a key's records before the fault."""
    before = output.records.where(F.col("timestamp_ms") < output.ms(injected_ns))
    keys = parse_records(before, expected, ("key",), ("_partition",), output.map)
    keys = keys.where("key IS NOT NULL")
    ends = keys.groupBy("key").agg(
        F.min("_partition").alias("home"), F.max("_partition").alias("other")
    )
    return ends.where("home = other").select("key", "home")


def _place(scopes: Iterable[LossScope]) -> str:
    """The place that a record belongs to, by its `home` and its `_index`, in Spark SQL."""
    subtask, window = OUTSIDE
    affected_scopes = [scope for scope in scopes if scope.partitions]
    in_scope = " OR ".join(
        f"(home IN ({_comma_list(scope.partitions)}) "
        f"AND _index BETWEEN {scope.first:d} AND {scope.last:d})"
        for scope in affected_scopes
    )
    affected = _comma_list(
        {partition for scope in affected_scopes for partition in scope.partitions}
    )
    return f"""
        CASE WHEN home IS NULL OR _index IS NULL THEN '{UNATTRIBUTED}'
             WHEN {in_scope or "false"} THEN '{IN_SCOPE}'
             WHEN {f"home IN ({affected})" if affected else "false"} THEN '{window}'
             ELSE '{subtask}' END
    """


def _comma_list(numbers: Iterable[int]) -> str:
    return ", ".join(f"{number:d}" for number in sorted(numbers))


def _examples(
    placed: DataFrame, counts: Mapping[str, int], output: AppendedRecords
) -> Iterable[Finding]:
    for place in OUTSIDE:
        if counts.get(place):
            rows = placed.where(placed.place == place).orderBy("_index", "key", "seq")
            yield from (_example(row, output) for row in rows.take(EXAMPLES))


def _example(row: Row, output: AppendedRecords) -> Finding:
    detail: dict[str, Any] = {
        "key": row.key,
        "seq": row.seq,
        "index": row._index,
        "lost": row.lost,
        "duplicated": row.duplicated,
    }
    return Finding(what=row.place, where=f"{output.name}: partition {row.home}", detail=detail)


def _reject_other_partitioners(case: JudgedRun, output: AppendedRecords) -> None:
    """Reject a job in Flink SQL whose sink of the output is not known or without the fixed
    partitioner; other programs are not checked.

    Raises LossScopeUnknown.
    """
    job = case.experiment.job
    if job is None or job.sql is None:
        return
    sinks = sinks_of(job.sql, output.name, output.topic)
    if not sinks:
        raise LossScopeUnknown(
            f"no table of the job's SQL is seen to write {output.name}, so that its partitioner is "
            "not known"
        )
    if unread := [sink.name for sink in sinks if not sink.known]:
        raise LossScopeUnknown(
            f"the statements on the job's table {unread[0]} are not all understood, so that its "
            "partitioner is not known; write its options into one CREATE TABLE"
        )
    if any(sink.options.get("sink.partitioner") != "fixed" for sink in sinks):
        raise LossScopeUnknown(
            "the job's sinks do not set 'sink.partitioner' = 'fixed', so that a partition does not "
            "show which subtask wrote to it"
        )
