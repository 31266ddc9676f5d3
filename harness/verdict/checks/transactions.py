"""Transactions: none hangs, and committed records become visible to readers in time.

A reader of committed records may read up to the *last stable offset*: where the oldest open
transaction of a partition begins. So a transaction that never ends hides all later committed
records, until the coordinator aborts it after its time-out (`transaction.timeout.ms` of the
producer; Kafka, KIP-98). The job itself continues without an error.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, ClassVar

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict.evidence.broker_clock import broker_clock_moved
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock
from streamquake.harness.verdict.evidence.partition_ends import (
    contradicted_at_the_end,
    moved_back,
    other_than_read,
    other_than_seen,
)
from streamquake.harness.verdict.evidence.phases import STEADY, phase_began
from streamquake.harness.verdict.evidence.stalls import (
    Stall,
    longest_possible_stall,
    longest_stalls,
    unsampled_begins,
)
from streamquake.harness.verdict.evidence.transaction_samples import (
    TransactionSample,
    samples_of,
    timed_out,
    unreported_ids,
)
from streamquake.harness.verdict.evidence.transactions import (
    partitions_of_outputs,
    writes_transactions,
)
from streamquake.reports.record.metrics import HOLE_S, Samples, by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import RunDrained
from streamquake.topologies.limits import Limit

Seconds = Limit
ENDS = ("stable_end", "end", "held_back")
Sampled = Mapping[str, Mapping[str, Samples]]
"""Series -> partition -> its samples."""


@checks.register
class Transactions(Check):
    """Held when no transaction hangs and no committed record stays invisible to readers.

    The transaction coordinators report the transactions, and the sampled ends of the outputs show
    what readers can read. Undecided where the job was not drained, where no coordinator answered
    after the drain, or where the ends were last sampled more than three seconds before it. A broker
    may be missing from the answer where all ends were sampled after the drain, and every
    transactional id that was reported before is reported again. Undecided too where the last
    sampled ends of a partition contradict each other, or what was read of it.
    """

    name: ClassVar[str] = "transactions"
    classes: ClassVar[tuple[str, ...]] = (
        "hanging transaction",
        "held back after the drain",
        "invisible for too long",
        "time-out too short",
    )

    hanging: Annotated[int, Field(ge=0)] = 0
    """How many transactions may be open beyond their time-out after the drain, or hide later
    records. A coordinator looks for overdue transactions every ten seconds, so one counts
    only if it is open for more than ten seconds after its time-out."""
    invisible_at_most_s: Seconds | None = None
    """How long a partition's last stable offset may stay unchanged with records beyond it, which
    readers cannot read. The samples are about a second apart; a stall that lasts longer only if
    it began right after the sample before it and ended right before the one after it is
    undecided. So is a partition with records that was first sampled later than this after the
    load began, and one whose end or stable end went back. Without it, not judged."""
    timeout_at_least_s: Seconds | None = None
    """The shortest allowed time-out of the job's transactions: one shorter than an outage loses
    records that a checkpoint relies on. Without it, not judged."""

    def check(self, case: JudgedRun) -> CheckResult:
        if not writes_transactions(case.experiment):
            return self.undecided("the job has no exactly-once sink into Kafka")
        samples = samples_of(case.history, clock_moved=broker_clock_moved(case))
        series = by_series(read_metrics(case.metrics))
        held_back = series.get("held_back", {})
        if not samples and not held_back:
            return self.undecided(
                "no coordinator reported its transactions, and the ends of the outputs were not "
                "sampled"
            )
        drained = case.history.first(RunDrained)
        last = next((sample for sample in samples if sample.after == "drain"), None)
        left = _held_back_after_drain(held_back, drained)
        contradicted = {**contradicted_at_the_end(series), **_read_elsewhere(case, series, drained)}
        stalls = longest_stalls(series)
        counts = _counts(last, samples, held_back, stalls)
        wrong = [
            *self._hanging(last),
            *self._hidden_offsets(last, left, contradicted),
            *self._invisible(stalls),
            *self._too_short(samples),
        ]
        if wrong:
            message = "; ".join(dict.fromkeys(_text_of_finding(finding) for finding in wrong[:3]))
            return self.violated(message, tuple(wrong), **counts)
        problems = (
            *self._unknown(case, last, left, samples, drained),
            *contradicted.values(),
            *other_than_seen(series, case.history),
            *self._unsampled(case, series, left, drained),
        )
        if why := next((problem for problem in problems if problem), ""):
            return self.undecided(why, (), **counts)
        return self.held(self._text_of(last, left, stalls), **counts)

    def _hanging(self, last: TransactionSample | None) -> Iterator[Finding]:
        found = () if last is None else last.hanging
        if len(found) > self.hanging:
            for transactional_id in found:
                open_for_s = round((transactional_id.age_ms or 0) / 1000, 1)
                yield Finding(
                    what="hanging transaction",
                    where=transactional_id.id,
                    detail={**transactional_id.report, "open_for_s": open_for_s},
                )

    def _hidden_offsets(
        self,
        last: TransactionSample | None,
        left: Mapping[str, int],
        contradicted: Container[str],
    ) -> Iterator[Finding]:
        if last is not None and 0 < len(last.open) <= self.hanging:
            return  # an allowed open transaction may hide records
        for where, offsets in left.items():
            if offsets > 0 and where not in contradicted:
                detail = {"offsets": offsets}
                yield Finding(what="held back after the drain", where=where, detail=detail)

    def _invisible(self, stalls: Sequence[Stall]) -> Iterator[Finding]:
        limit_s = self.invisible_at_most_s
        for stall in stalls:
            if limit_s is not None and stall.seconds > limit_s:
                yield Finding(
                    what="invisible for too long",
                    where=stall.where,
                    detail={
                        "from_s": round(stall.start_s, 1),
                        "to_s": round(stall.end_s, 1),
                        "stable_end": stall.stable_end,
                        "offsets_hidden": stall.hidden,
                        "allowed_s": limit_s,
                    },
                )

    def _too_short(self, samples: Sequence[TransactionSample]) -> Iterator[Finding]:
        if self.timeout_at_least_s is not None:
            for name, timeout_ms in _timeouts(samples).items():
                if timeout_ms < self.timeout_at_least_s * 1000:
                    detail = {"timeout_ms": timeout_ms, "needed_s": self.timeout_at_least_s}
                    yield Finding(what="time-out too short", where=name, detail=detail)

    def _unknown(
        self,
        case: JudgedRun,
        last: TransactionSample | None,
        left: Mapping[str, int],
        samples: Sequence[TransactionSample],
        drained: RunDrained | None,
    ) -> Iterator[str]:
        """Missing evidence about the transactional ids."""
        if not_drained(case.history):
            yield "the job was not drained, so what is open now may yet be committed"
        for transactional_id in () if last is None else last.ids:
            yield transactional_id.uncertainty
            if (transactional_id.is_open or transactional_id.is_ending) and not left:
                yield (
                    f"{transactional_id.id} is {transactional_id.state} after the drain, and the "
                    "ends were not sampled"
                )
        if samples and not any(sample.ids for sample in samples):
            yield "no transactional id of the run was seen, so no transaction was judged"
        yield _asked_early(case, last, drained)
        if last is not None:
            if last.unanswered and not left:
                yield f"after the drain not every broker answered: {last.unanswered}"
            yield unreported_ids(last, samples)
        if self.timeout_at_least_s is not None:
            if not _timeouts(samples):
                yield "no coordinator reported the time-out of a transaction"
            unreadable = (
                transactional_id
                for sample in samples
                for transactional_id in sample.ids
                if transactional_id.timeout_ms is None
            )
            yield from (transactional_id.uncertainty for transactional_id in unreadable)
        if last is None:
            yield "after the drain no coordinator answered"

    def _unsampled(
        self,
        case: JudgedRun,
        series: Sampled,
        left: Mapping[str, int],
        drained: RunDrained | None,
    ) -> Iterator[str]:
        """Missing evidence about the partitions. All partitions of a run are sampled together."""
        sampled_at_all = (where for name in ENDS for where in series.get(name, {}))
        partitions = dict.fromkeys((*sampled_at_all, *partitions_of_outputs(case.experiment)))
        if left:
            unseen = (where for where in partitions if where not in left)
            yield from (
                f"{each} was not sampled after the drain, and others were" for each in unseen
            )
        elif drained is not None:
            sampled = _sampled_since(series.get("held_back", {}), drained.at_s - HOLE_S)
            yield from (
                f"the ends of {each} were not sampled until the drain"
                for each in partitions
                if each not in sampled
            )
        if self.invisible_at_most_s is not None:
            yield from _unknown_stalls(case, series, partitions, drained, self.invisible_at_most_s)

    def _text_of(
        self, last: TransactionSample | None, left: Mapping[str, int], stalls: Sequence[Stall]
    ) -> str:
        message = []
        if last is not None:
            ids, hung = len(last.ids), len(last.hanging)
            message.append(f"of {ids} transactional ids {hung} hung after the drain")
        if left:
            message.append(f"{len(left)} partitions readable to their end")
        if stalls:
            message.append(f"the longest stall took {stalls[0].seconds:.1f} s")
        return ", ".join(message)


def _unknown_stalls(
    case: JudgedRun,
    series: Sampled,
    partitions: Iterable[str],
    drained: RunDrained | None,
    allowed_s: float,
) -> Iterator[str]:
    """Stalls that may be longer than allowed, by the missing or contradictory samples."""
    yield from moved_back(series)
    sampled = {where for where in series.get("stable_end", {}) if where in series.get("end", {})}
    if missing := [where for where in partitions if where not in sampled]:
        yield f"the stable ends of {missing[0]} were not sampled"
    load = phase_began(case.history, STEADY)
    since_s = 0.0 if load is None else load.at_s
    for where, late_s in unsampled_begins(series, since_s).items():
        if late_s > allowed_s:
            yield (
                f"{where} was first sampled {late_s:.1f} s after the load began, and "
                f"{allowed_s:g} s are allowed"
            )
    until_s = None if drained is None else drained.at_s
    longest = longest_possible_stall(series, until_s, since_s)
    if longest is not None and longest.at_most_s > allowed_s:
        yield (
            f"{longest.where} did not move from {longest.stable_end:,} for "
            f"{longest.seconds:.1f} to {longest.at_most_s:.1f} s by the samples around it, and "
            f"{allowed_s:g} s are allowed"
        )


def _read_elsewhere(case: JudgedRun, series: Sampled, drained: RunDrained | None) -> dict[str, str]:
    """Partition -> a message where its samples contradict the stored output."""
    found: dict[str, str] = {}
    for name, output in case.experiment.promise.outputs.items():
        stored = StoredOutput(path=case.data / name)
        if drained is not None and output.kafka is not None and stored.complete:
            with suppress(ValueError):  # exactly_once says what is wrong with it
                ends = stored.facts().get("ends")
                read = ends.items() if isinstance(ends, Mapping) else ()
                offsets = {partition: end for partition, end in read if isinstance(end, int)}
                found |= other_than_read(series, name, offsets, drained.at_s)
    return found


def _asked_early(
    case: JudgedRun, last: TransactionSample | None, drained: RunDrained | None
) -> str:
    """A message if the last answer of the coordinators is older than the drain; else empty."""
    if last is None or drained is None or last.asked_ms is None:
        return ""
    asked_ns = EngineClock(case.history).run_clock_ns(last.asked_ms)
    if asked_ns is None or (early_s := drained.at_s - asked_ns / 1e9) <= STAMPS_S:
        return ""
    return f"the coordinators were asked last {early_s:.1f} s before the drain"


def _held_back_after_drain(
    held_back: Mapping[str, Samples], drained: RunDrained | None
) -> dict[str, int]:
    """Partition -> offsets held back at its last sample after the drain, when there are no
    writes."""
    if drained is None:
        return {}
    sampled = _sampled_since(held_back, drained.at_s)
    return {where: int(samples.value[-1]) for where, samples in sampled.items()}


def _sampled_since(held_back: Mapping[str, Samples], at_s: float) -> dict[str, Samples]:
    """The partitions that were sampled at or after a moment, with their samples."""
    return {where: samples for where, samples in held_back.items() if samples.at_s[-1] >= at_s}


def _timeouts(samples: Sequence[TransactionSample]) -> dict[str, int]:
    """Id -> its shortest readable time-out in milliseconds; each new producer of an id may set
    another one."""
    found: dict[str, int] = {}
    for transactional_id in (
        transactional_id for sample in samples for transactional_id in sample.ids
    ):
        if transactional_id.timeout_ms is not None:
            found[transactional_id.id] = min(
                transactional_id.timeout_ms,
                found.get(transactional_id.id, transactional_id.timeout_ms),
            )
    return found


def _counts(
    last: TransactionSample | None,
    samples: Sequence[TransactionSample],
    held_back: Mapping[str, Samples],
    stalls: Sequence[Stall],
) -> dict[str, int | float | None]:
    """A figure without evidence is None; `open` and `hanging` are after the drain."""
    most = [int(samples.value.max()) for samples in held_back.values()]
    timeouts = _timeouts(samples)
    return {
        "ids": None if last is None else len(last.ids),
        "open": None if last is None else len(last.open),
        "hanging": None if last is None else len(last.hanging),
        "longest_stall_s": round(stalls[0].seconds, 1) if stalls else None,
        "max_held_back": max(most, default=None),
        "timeouts_aborted": timed_out(samples),
        "shortest_timeout_s": min(timeouts.values()) / 1000 if timeouts else None,
    }


def _text_of_finding(finding: Finding) -> str:
    detail = finding.detail
    match finding.what:
        case "hanging transaction":
            return f"{finding.where} was open {detail['open_for_s']} s after it began"
        case "held back after the drain":
            return f"{finding.where} hides {detail['offsets']:,} offsets though nothing writes"
        case "invisible for too long":
            took_s = detail["to_s"] - detail["from_s"]
            return (
                f"{finding.where} did not move from {detail['stable_end']:,} for {took_s:.1f} s, "
                f"{detail['allowed_s']:g} s allowed"
            )
        case _:
            return f"{finding.where} times out after {detail['timeout_ms'] / 1000:g} s"
