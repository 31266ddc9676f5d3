"""Continuity: while some tasks failed over, the output of the others continued.

It is judged from the output itself, for any engine: the topic's records have the broker's append
time, and the time between two records of a key is that key's pause. Only committed records count,
by their append time; readers also wait for the commit. Micro-batches write in turns, so a key
usually pauses from batch to batch: a useful limit must be longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.reconcile.caching import persisted
from streamquake.harness.verdict.evidence.append_times import (
    AppendedRecords,
    AppendTimesUnknown,
    append_times_of,
)
from streamquake.harness.verdict.evidence.message_keys import message_key_doubt
from streamquake.harness.verdict.evidence.observation_window import (
    ObservationWindow,
    ObservationWindowUnknown,
    observation_window_of,
)
from streamquake.harness.verdict.evidence.pauses import (
    OtherCauses,
    TimeSpan,
    UsualGaps,
    keys_sent_throughout,
    last_sends,
    longest_pauses,
    usual_gaps,
    with_own_ms,
    with_unended_pauses,
)
from streamquake.harness.verdict.evidence.sent_times import (
    recorded_between,
    sent_ranges_of,
    silences_of,
)
from streamquake.harness.verdict.evidence.task_restarts import restarts_of_subtasks
from streamquake.harness.verdict.expected_output import expectations, register_sent
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit, Share

WORST = 6
PARTITIONS_SHOWN = 16
WHY = {
    "keys": "`expected` has no column `key`",
    "partitions": "some keys that were sent had none either",
}
"""Why a key, or a partition, without any record may have stopped."""


@dataclass(frozen=True, kw_only=True)
class GroupPauses:
    """The pauses of one kind of group: counts by name, and findings for the longest pauses."""

    counts: Mapping[str, int | float | None]
    of: int
    continuous: int
    perhaps_continuous: int
    """How many continued if other causes than the faults explain what they can."""
    findings: tuple[Finding, ...]
    without_records: int = 0
    """Groups without any record, which may have stopped before their first one."""

    @property
    def share(self) -> float:
        return self.continuous / self.of if self.of else 0.0

    @property
    def perhaps_share(self) -> float:
        return self.perhaps_continuous / self.of if self.of else 0.0


@checks.register
class Continuity(Check):
    """Held when the needed share of keys, or of partitions, never paused longer than the limit.

    Pauses count from the first fault's effect until five seconds after the last heal or restart,
    but not after the load; a key that stopped by then pauses until its last send. Only keys count
    that the load sent throughout: a key that was not sent cannot pause. A key that no record ever
    had paused all the time if `expected` has it, and does not count if `expected` leaves it out.
    With `fault`, a pause after an earlier fault counts from the call on. A failure long after the
    heal of all faults and the recovery ends the interval. Undecided where pauses without a fault
    are as long as the limit, where the heal of a fault was not seen, where the job failed and was
    not seen running again, where pauses are too long only with the load's own silences, where they
    are too long but the job was down by itself when the fault was called, where no record has a key
    that was sent, where the message keys are not the keys of the records, where keys never had a
    record and `expected` has no column `key`, and, for partitions, where some never had a record
    and some sent keys never had one either. Message keys must equal the output's column `key`;
    without it, they must have been sent, and each be in one partition before the first fault.
    """

    name: ClassVar[str] = "continuity"
    needs_topic: ClassVar[bool] = True
    needs_keys: ClassVar[bool] = True
    classes: ClassVar[tuple[str, ...]] = ("a key paused", "a partition paused")

    within_s: Annotated[Limit, Field(ge=0.5)]
    """The longest allowed pause, in seconds. The load records its sends a few times a second, so
    shorter pauses cannot be distinguished from its own."""
    share: Share = 1.0
    """The share of the keys, or of the partitions, that must have continued."""
    by: Literal["keys", "partitions"] = "keys"
    """Which of the two is judged; both are reported."""
    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""
    min_keys: Annotated[int, Field(ge=1)] = 1
    """With fewer keys than this, sent all the time, nothing is proven."""
    fault: str | None = None
    """Judge only the pauses after faults of this name; after all when left out."""

    def check(self, case: JudgedRun) -> CheckResult:
        try:
            watched = observation_window_of(case.history, self.within_s, self.fault)
            output = append_times_of(case, self.output)
        except (ObservationWindowUnknown, AppendTimesUnknown) as reason:
            return self.undecided(str(reason))
        usual = usual_gaps(output.records, "key", output.ms(watched.first_ns))
        if usual is None:
            return self.undecided(f"{output.name}: no key has two records before the fault")
        figures: dict[str, Any] = {
            "normal_gap_p99_ms": round(usual.p99_ms),
            "normal_rhythm_ms": round(usual.period_ms),
            "restarted": _count_restarted(case.history, watched.start_ns),
        }
        if usual.longest_ms >= self.within_s * 1000:
            return self.undecided(
                f"{output.name}: already before the fault {_too_long(usual)}, so that a limit of "
                f"{self.within_s:g} s proves nothing; send more often or allow more",
                **figures,
            )
        causes = _other_causes(case.history, output, watched)
        called_ms = output.ms(watched.start_ns)
        span = TimeSpan(
            start_ms=called_ms - round(usual.longest_ms),
            end_ms=output.ms(watched.end_ns),
            cut_ms=None if watched.cut_ns is None else output.ms(watched.cut_ns),
            since_ms=called_ms if watched.had_earlier_faults else None,
        )
        try:
            keys, lanes = self._pauses(case, output, span, causes)
        except AppendTimesUnknown as reason:
            return self.undecided(str(reason), **figures)
        figures = {**keys.counts, **figures, **lanes.counts}
        if keys.of < self.min_keys:
            return self.undecided(
                f"{output.name}: the load sent {keys.of:,} keys throughout the fault without a "
                f"pause of its own, and at least {self.min_keys:,} are needed",
                **figures,
            )
        judged = keys if self.by == "keys" else lanes
        return self._message(output, judged, figures, watched, causes)

    def _pauses(
        self, case: JudgedRun, output: AppendedRecords, span: TimeSpan, causes: OtherCauses
    ) -> tuple[GroupPauses, GroupPauses]:
        register_sent(case)
        start_ns, end_ns, cut_ns = _on_run_clock(output, span)
        recorded = sent_ranges_of(case.history)
        sent_ranges = recorded_between(recorded, start_ns, end_ns)
        limit_ms = self.within_s * 1000
        sent_keys = keys_sent_throughout(case.spark(), sent_ranges, output.began_ms, span, limit_ms)
        later_sends = [sent_range for sent_range in recorded if end_ns < sent_range.at_ns <= cut_ns]
        sends = last_sends(case.spark(), later_sends, output.began_ms)
        pauses = with_unended_pauses(longest_pauses(output.records, "key", span), sends, span)
        span_ms = F.lit(span.end_ms - span.begin_ms).cast("bigint")
        keys = sent_keys.join(pauses, F.col("key") == F.col("of"), "left").select(
            F.col("key").alias("of"),
            F.coalesce("gap_ms", span_ms).alias("gap_ms"),
            "since_ms",
            "partition",
        )
        with persisted(with_own_ms(keys, span, causes)) as keys:
            partitions = {row[0] for row in keys.select("partition").distinct().collect()}
            if partitions == {None}:
                raise AppendTimesUnknown(
                    f"{output.name}: none of its records has a key that was sent, so that their "
                    "pauses are not known"
                )
            if doubt := message_key_doubt(case, output):
                raise AppendTimesUnknown(
                    f"{output.name}: {doubt}, so that the pauses of keys are not known"
                )
            unclear = 0
            if None in partitions:
                keys, unclear = _with_expected_keys(case, output, keys)
            of_lane = keys.join(sends, "of").groupBy(F.col("partition").alias("of"))
            lanes = with_unended_pauses(
                longest_pauses(output.records, "partition", span),
                of_lane.agg(F.max("sent_ms").alias("sent_ms")),
                span,
            )
            # The partition of a key without records is unknown.
            without_records = output.partitions - lanes.count() if None in partitions else 0
            partitions_of_keys = lanes.where(F.col("of").isin(partitions - {None}))
            return self._keys(keys, unclear, output), self._partitions(
                with_own_ms(partitions_of_keys, span, causes), without_records, output
            )

    def _keys(self, keys: DataFrame, without_records: int, output: AppendedRecords) -> GroupPauses:
        gap = F.col("gap_ms")
        found = keys.agg(
            F.count("*").alias("keys"),
            F.count_if(gap <= self.within_s * 1000).alias("continuous"),
            F.count_if(F.col("own_ms") <= self.within_s * 1000).alias("perhaps_continuous"),
            F.percentile(gap, [0.5, 0.95, 1.0]).alias("gaps"),
        ).first()
        assert found is not None
        p50, p95, longest = (round(part) for part in found.gaps) if found.keys else [None] * 3
        share = round(found.continuous / found.keys, 4) if found.keys else None
        by_lane = keys.groupBy("partition").agg(F.percentile(gap, 0.5).alias("gap_ms"))
        medians = by_lane.where("partition IS NOT NULL").orderBy("partition").collect()
        return GroupPauses(
            counts={
                "keys": found.keys,
                "continuous": found.continuous,
                "share": share,
                "gap_p50_ms": p50,
                "gap_p95_ms": p95,
                "gap_max_ms": longest,
                **{
                    f"partition_{row.partition}.gap_p50_ms": round(row.gap_ms)
                    for row in medians[:PARTITIONS_SHOWN]
                },
            },
            of=found.keys,
            continuous=found.continuous,
            perhaps_continuous=found.perhaps_continuous,
            findings=self._worst(keys, "a key paused", output),
            without_records=without_records,
        )

    def _partitions(
        self, lanes: DataFrame, without_records: int, output: AppendedRecords
    ) -> GroupPauses:
        rows = lanes.collect()
        continuous = sum(row.gap_ms <= self.within_s * 1000 for row in rows)
        return GroupPauses(
            counts={"partitions": len(rows), "partitions_continuous": continuous},
            of=len(rows),
            continuous=continuous,
            perhaps_continuous=sum(row.own_ms <= self.within_s * 1000 for row in rows),
            findings=self._worst(lanes, "a partition paused", output),
            without_records=without_records,
        )

    def _worst(self, groups: DataFrame, what: str, output: AppendedRecords) -> tuple[Finding, ...]:
        too_long = groups.where(F.col("gap_ms") > self.within_s * 1000)
        rows = too_long.orderBy(F.desc("gap_ms"), "of").take(WORST)
        return tuple(
            Finding(
                what=what,
                where=f"{output.name}: {row.of}",
                detail={
                    "gap_ms": row.gap_ms,
                    "partition": row.partition,
                    "since_s": row.since_ms and (row.since_ms - output.began_ms) / 1000,
                },
            )
            for row in rows
        )

    def _message(
        self,
        output: AppendedRecords,
        judged: GroupPauses,
        figures: Mapping[str, Any],
        watched: ObservationWindow,
        causes: OtherCauses,
    ) -> CheckResult:
        message = (
            f"{judged.continuous:,} of {judged.of:,} {self.by} of {output.name} never paused "
            f"longer than {self.within_s:g} s"
        )
        if judged.share < self.share:
            message += f", {self.share:.0%} needed"
            if judged.perhaps_share >= self.share:
                reasons = [*_silence_text(causes), *filter(None, [watched.down_before])]
                return self.undecided(f"{message}; {'; '.join(reasons)}", **figures)
            return self.violated(message, judged.findings, **figures)
        if judged.continuous / (judged.of + judged.without_records) < self.share:
            return self.undecided(
                f"{message}; {judged.without_records} more never had a record, and {WHY[self.by]}, "
                "so that those may have stopped",
                **figures,
            )
        if watched.reason_not_held is not None:
            return self.undecided(f"{message}; {watched.reason_not_held}", **figures)
        return self.held(message, **figures)


def _with_expected_keys(
    case: JudgedRun, output: AppendedRecords, keys: DataFrame
) -> tuple[DataFrame, int]:
    """The keys without those that have no record and that `expected` leaves out, as a job does that
    filters its input; and how many have none where it is not known whether `expected` has them."""
    without_record = F.col("partition").isNull()
    with expectations(case) as expected:
        records = expected.get(output.name)
        if records is None or "key" not in records.columns:
            return keys.where(~without_record), keys.where(without_record).count()
        expected_keys = records.select(F.col("key").alias("of")).distinct()
        left_out = keys.where(without_record).join(expected_keys, "of", "anti")
        return keys.join(left_out.select("of"), "of", "anti"), 0


def _other_causes(
    history: History, output: AppendedRecords, watched: ObservationWindow
) -> OtherCauses:
    """What else than the faults may have made a pause of the interval."""
    silences = silences_of(history, watched.first_ns)
    down_until_ns = watched.down_until_ns
    return OtherCauses(
        silences=tuple(
            (output.ms(each.since_ns), output.ms(each.until_ns))
            for each in silences
            if each.until_ns > watched.start_ns and each.since_ns < watched.end_ns
        ),
        down_until_ms=None if down_until_ns is None else output.ms(down_until_ns),
    )


def _silence_text(causes: OtherCauses) -> Iterator[str]:
    unsent_ms = sum(until_ms - since_ms for since_ms, until_ms in causes.silences)
    if unsent_ms:
        yield f"the load itself sent nothing for {unsent_ms / 1000:.1f} s"


def _count_restarted(history: History, injected_ns: int) -> int | None:
    """How many subtasks failed over; None where the engine does not report attempts."""
    found = restarts_of_subtasks(history, injected_ns).values()
    return sum(task.restarts > 0 for task in found) if found else None


def _too_long(usual: UsualGaps) -> str:
    if usual.p99_ms >= usual.period_ms:
        return f"one gap of a hundred lasted {usual.p99_ms:,.0f} ms or more"
    return f"a key paused {usual.period_ms:,.0f} ms or more for half of the time"


def _on_run_clock(output: AppendedRecords, span: TimeSpan) -> tuple[int, int, float]:
    """The span's start, end and cut on the run's clock; infinity without a cut."""
    start_ns, end_ns = ((part - output.began_ms) * 1_000_000 for part in span[:2])
    cut_ns = inf if span.cut_ms is None else (span.cut_ms - output.began_ms) * 1_000_000
    return start_ns, end_ns, cut_ns
