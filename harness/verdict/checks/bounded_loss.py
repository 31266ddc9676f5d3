"""Bounded loss: what was lost or came twice belongs to the tasks that failed, and to that time.

For settings that trade records for availability, such as a failover that restarts single tasks
without rewinding the others. They are judged by what they still promise: that nothing is lost,
or repeated, elsewhere or at another time, and that nothing comes out that was not sent.

Which subtask a record belongs to is shown by its partition: with `'sink.partitioner' = 'fixed'`
subtask n of Flink's sink writes to partition n, modulo their number (FlinkFixedPartitioner), and
a key that was routed to it before the fault is routed to it always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.reconcile.reading.promised_columns import parse_records
from streamquake.harness.reconcile.reconcile import missing_or_repeated_records
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.reconcile.values.promised import with_canonical_texts
from streamquake.harness.verdict.evidence.append_times import (
    AppendedRecords,
    AppendTimesUnknown,
    appended,
)
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.loss_scope import LossScope, LossScopeUnknown, scopes_of
from streamquake.harness.verdict.expected_output import (
    STATUS,
    actual_of,
    expectations,
    reconciled,
    register_sent,
    unsettled,
)
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import ZeroOrMore

IN_SCOPE, UNATTRIBUTED = "in scope", "unattributed"
OUTSIDE = ("outside the failed subtask", "outside the window")
NEVER_ALLOWED = ("phantom", "changed", "reordered")
EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class AttributedRecords:
    """How many records were lost or came twice, by where they belong, and a few of each place."""

    counts: Mapping[str, int]
    findings: tuple[Finding, ...]

    def of(self, place: str) -> int:
        return self.counts.get(place, 0)


@checks.register
class BoundedLoss(Check):
    """Held when every record lost or repeated belongs to a subtask that restarted and was sent
    between the last checkpoint before the fault and the moment the subtask ran again.

    A job that has kept state of what it lost gives other totals afterwards: name in its promise,
    as `compare`, only what a record has from itself.
    """

    name: ClassVar[str] = "bounded_loss"
    classes: ClassVar[tuple[str, ...]] = ("too many", *OUTSIDE)

    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""
    slack_s: ZeroOrMore = 2.0
    """Seconds by which records may have been sent earlier or later, since they were under way."""
    at_most: Annotated[int, Field(ge=0)] | None = None
    """How many records may be lost or repeated in all."""
    vertex: str | None = None
    """Part of the name of the vertex whose subtasks write the output; the one with a writer, or a
    sink, in its name when left out."""

    def check(self, case: JudgedRun) -> CheckResult:
        try:
            output = appended(case, self.output)
            _reject_other_partitioners(case)
            scopes = scopes_of(case.history, self.vertex, output.partitions, self.slack_s)
        except (AppendTimesUnknown, LossScopeUnknown) as reason:
            return self.undecided(str(reason))
        if case.experiment.job is not None and not_drained(case.history):
            return self.undecided(
                f"{output.name}: the job had not committed everything, so what is missing may yet "
                "come"
            )
        return self._reconciled(case, output, scopes)

    def _reconciled(
        self, case: JudgedRun, output: AppendedRecords, scopes: tuple[LossScope, ...]
    ) -> CheckResult:
        promised = case.experiment.promise.outputs[output.name]
        register_sent(case)
        with expectations(case) as all_expected:
            if (expected := all_expected.get(output.name)) is None:
                return self.undecided(f"{output.name}: nothing says what it should hold")
            if STATUS not in expected.columns and unsettled(case):
                return self.undecided(f"{output.name}: it rests on sends of unknown result")
            found = reconciled(case, output.name, promised, expected)
            if found.empty:
                return self.undecided(f"{output.name}: nothing was expected and nothing came")
            if not found.counts["lost"] and not found.counts["duplicated"]:
                return self._message(
                    output, scopes, found, AttributedRecords(counts={}, findings=())
                )
            if not {"key", "seq"} <= {*promised.identity}:
                return self.undecided(
                    f"{output.name}: its records are identified by {', '.join(promised.identity)}, "
                    "and only with key and seq can one be traced to its send"
                )
            return self._message(output, scopes, found, _attributed(case, output, expected, scopes))

    def _message(
        self,
        output: AppendedRecords,
        scopes: tuple[LossScope, ...],
        found: ReconciliationResult,
        parts: AttributedRecords,
    ) -> CheckResult:
        astray = (found.counts["lost"] or 0) + (found.counts["duplicated"] or 0)
        figures = _figures(scopes, found, parts)
        alien = [name for name in NEVER_ALLOWED if found.counts[name]]
        broken = [f"{found.counts[name]:,} {name}" for name in alien]
        broken += [f"{parts.of(place):,} {place}" for place in OUTSIDE if parts.of(place)]
        of_alien = (f for f in found.findings if f.what.startswith(tuple(alien)))
        findings = (*parts.findings, *of_alien)
        lost = f"{found.counts['lost']:,} lost and {found.counts['duplicated']:,} duplicated"
        if broken:
            message = f"{', '.join(broken)} in {output.name} ({lost})"
            return self.violated(message, findings, **figures)
        if self.at_most is not None and astray > self.at_most:
            finding = Finding(what="too many", where=output.name, detail=figures)
            message = f"{lost} in {output.name}, {self.at_most:,} allowed"
            return self.violated(message, (finding,), **figures)
        if not figures["affected_partitions"]:
            return self.undecided(
                f"{output.name}: no subtask restarted, so that nothing could be lost", (), **figures
            )
        if parts.of(UNATTRIBUTED):
            return self.undecided(
                f"{parts.of(UNATTRIBUTED):,} of {astray:,} records in {output.name} cannot be "
                "attributed: their keys did not come before the fault, or in several partitions",
                (),
                **figures,
            )
        return self.held(
            f"{lost} in {output.name}, all of subtasks that restarted and of that time", **figures
        )


def _figures(
    scopes: tuple[LossScope, ...], found: ReconciliationResult, parts: AttributedRecords
) -> dict[str, int | float | None]:
    subtask, window = OUTSIDE
    return {
        **{name: found.counts[name] for name in ("lost", "duplicated", *NEVER_ALLOWED)},
        "in_scope": parts.of(IN_SCOPE),
        "outside_subtask": parts.of(subtask),
        "outside_window": parts.of(window),
        "unattributed": parts.of(UNATTRIBUTED),
        "window_s": round(max(scope.seconds for scope in scopes), 3),
        "affected_partitions": len({n for scope in scopes for n in scope.partitions}),
    }


def _attributed(
    case: JudgedRun, output: AppendedRecords, expected: DataFrame, scopes: tuple[LossScope, ...]
) -> AttributedRecords:
    """Where all of the lost and the duplicated belong."""
    promised = case.experiment.promise.outputs[output.name]
    actual, shape = actual_of(case, output.name, promised, expected)
    sent = case.spark().table("sent").select("key", "seq", F.col("index").alias("_index"))
    placed = (
        missing_or_repeated_records(with_canonical_texts(expected), actual, shape)
        .join(sent, ["key", "seq"], "left")
        .join(_homes(output, expected, min(scope.injected_ns for scope in scopes)), "key", "left")
        .withColumn("place", F.expr(_place(scopes)))
    )
    with persisted(placed):
        sums = placed.groupBy("place").agg(F.sum(F.col("lost") + F.col("duplicated")).alias("n"))
        counts = {row.place: int(row.n) for row in sums.collect()}
        return AttributedRecords(counts=counts, findings=tuple(_examples(placed, counts, output)))


def _homes(output: AppendedRecords, expected: DataFrame, injected_ns: int) -> DataFrame:
    """key, home: the one partition in which a key's records stood before the fault."""
    before = output.records.where(F.col("timestamp_ms") < output.ms(injected_ns))
    keys = parse_records(before, expected, ("key",), ("_partition",), output.map)
    keys = keys.where("key IS NOT NULL")
    ends = keys.groupBy("key").agg(
        F.min("_partition").alias("home"), F.max("_partition").alias("other")
    )
    return ends.where("home = other").select("key", "home")


def _place(scopes: Iterable[LossScope]) -> str:
    """Where a record belongs, by its `home` and its `_index`, in Spark SQL."""
    subtask, window = OUTSIDE
    fitting = [scope for scope in scopes if scope.partitions]
    in_scope = " OR ".join(
        f"(home IN ({_listed(scope.partitions)}) "
        f"AND _index BETWEEN {scope.first:d} AND {scope.last:d})"
        for scope in fitting
    )
    affected = _listed({n for scope in fitting for n in scope.partitions})
    return f"""
        CASE WHEN home IS NULL OR _index IS NULL THEN '{UNATTRIBUTED}'
             WHEN {in_scope or "false"} THEN '{IN_SCOPE}'
             WHEN {f"home IN ({affected})" if affected else "false"} THEN '{window}'
             ELSE '{subtask}' END
    """


def _listed(numbers: Iterable[int]) -> str:
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


def _reject_other_partitioners(case: JudgedRun) -> None:
    """A job in Flink SQL says how it partitions; of any other program its author must know.

    Raises LossScopeUnknown.
    """
    job = case.experiment.job
    sql = "" if job is None or job.sql is None else "".join(job.sql.split())
    if "'connector'='kafka'" in sql and "'sink.partitioner'='fixed'" not in sql:
        raise LossScopeUnknown(
            "the job's sinks do not say 'sink.partitioner' = 'fixed', so that a partition does not "
            "show which subtask wrote to it"
        )
