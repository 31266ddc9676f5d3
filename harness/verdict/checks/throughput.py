"""Throughput: the longest outage of reliable output, and its worst and best second.

It is judged from the output itself, for any engine; `harness/verdict/evidence/output_rate.py`
defines the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.append_times import (
    AppendedRecords,
    AppendTimesUnknown,
    append_times_of,
)
from streamquake.harness.verdict.evidence.observation_window import (
    ObservationWindow,
    ObservationWindowUnknown,
    observation_window_of,
)
from streamquake.harness.verdict.evidence.output_rate import (
    OutputRate,
    Silence,
    Stamps,
    UsualRateUnknown,
    output_rate_of,
)
from streamquake.harness.verdict.evidence.sent_times import (
    sent_per_s,
    sent_ranges_of,
    silences_of,
)
from streamquake.harness.verdict.evidence.stopped_partitions import (
    StoppedPartition,
    stopped_partitions,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit, Share

LEAST_S = 1.0
"""The load must continue for at least a whole second after the injection."""
LEAST_LIMIT_S = 0.5
"""Shorter outages cannot be distinguished from errors of a broker's clock and are not judged."""
UNUSUAL = 2
"""An outage must be longer than this multiple of the longest gap before any fault to count as its
effect."""

USUAL_NS = 5 * 10**9
"""The usual rate of the load is that of so many nanoseconds before the first fault."""


@checks.register
class Throughput(Check):
    """Held when the output never stopped for longer than the limit, and its worst second had the
    needed share of the usual one.

    It counts from the first fault's call until five seconds after the last heal or restart, but not
    after the load; `peak_share` counts until the last record. A partition that stopped for good,
    although its keys were still sent, is a violation too. With `fault`, time before its call counts
    only without an earlier fault. Undecided where the longest outage is not clearly longer than one
    before any fault, where the load itself sent nothing meanwhile, where one was not over when the
    load ended or another fault was called, where a partition stopped and the run was not drained,
    or its message keys are not those that were sent (see `continuity`), where the heal of a fault
    was not seen, where the job failed and was not seen running again, and where it stopped for too
    long but the job was down by itself when the fault was called.
    A failure long after the heal of all faults and the recovery ends the interval, as another fault
    does.
    """

    name: ClassVar[str] = "throughput"
    needs_topic: ClassVar[bool] = True
    classes: ClassVar[tuple[str, ...]] = ("an outage", "a poor second", "a partition stopped")

    outage_within_s: Annotated[Limit, Field(ge=LEAST_LIMIT_S)]
    """The longest allowed time without any record, in seconds."""
    least_share: Share | None = None
    """The share of the median before the fault that the worst second must have. Without it, not
    judged."""
    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""
    fault: str | None = None
    """Judge only the outages after faults of this name; after all when left out."""

    def check(self, case: JudgedRun) -> CheckResult:
        try:
            watched = observation_window_of(case.history, LEAST_S, self.fault)
            output = append_times_of(case, self.output)
            lanes = _stamps(output)
            rate = _rate(case.history, output, watched, lanes[0])
        except (ObservationWindowUnknown, AppendTimesUnknown, UsualRateUnknown) as unknown:
            return self.undecided(str(unknown))
        silent = stopped_partitions(
            case,
            output,
            lanes,
            output.ms(watched.start_ns),
            self.outage_within_s * 1000,
            _cut_ms(output, watched),
            output.ms(watched.first_ns),
        )
        stopped = [lane for lane in silent if not lane.unclear]
        unclear = [lane for lane in silent if lane.unclear]
        load_share = _load_share(case.history, output, rate, watched)
        figures = _figures(rate, None if unclear else len(stopped))
        message = (
            f"{output.name} stopped for {rate.outage_ms / 1000:.1f} s at most, "
            f"{self.outage_within_s:g} s allowed; {_worst_second(rate)}"
        )
        if stopped:
            message += f"; {len(stopped)} of its partitions never resumed"
        if self._is_poor(rate):
            message += f", {self.least_share:.0%} needed"
        if findings := self._findings(output, rate, load_share, stopped, figures):
            if watched.down_before and not _began_later(output, rate, watched):
                return self.undecided(f"{message}; {watched.down_before}", **figures)
            return self.violated(message, findings, **figures)
        if reason := self._uncertainty(rate, load_share, watched):
            return self.undecided(f"{message}{reason}", **figures)
        if unclear:
            return self.undecided(f"{message}; {_unclear_text(output, unclear[0])}", **figures)
        return self.held(message, **figures)

    def _is_too_long(self, outage_ms: int) -> bool:
        return outage_ms > self.outage_within_s * 1000

    def _is_poor(self, rate: OutputRate) -> bool:
        if self.least_share is None or rate.least_share is None:
            return False
        return rate.least_share < self.least_share

    def _load_was_poor(self, load_share: float | None) -> bool:
        return load_share is not None and load_share < (self.least_share or 0)

    def _findings(
        self,
        output: AppendedRecords,
        rate: OutputRate,
        load_share: float | None,
        stopped: Sequence[StoppedPartition],
        figures: dict[str, Any],
    ) -> tuple[Finding, ...]:
        findings = [_stopped_finding(output, partition) for partition in stopped]
        gap_ms = rate.loaded_outage_ms
        if self._is_too_long(gap_ms) and gap_ms > UNUSUAL * rate.usual_gap_ms:
            since_s = (rate.loaded_outage_from_ms - output.began_ms) / 1000
            detail = {"gap_ms": gap_ms, "since_s": since_s}
            findings.append(Finding(what="an outage", where=output.name, detail=detail))
        is_excused = rate.unsent_ms or _was_out(rate) or self._load_was_poor(load_share)
        if self._is_poor(rate) and not is_excused:
            findings.append(Finding(what="a poor second", where=output.name, detail=figures))
        return tuple(findings)

    def _uncertainty(
        self, rate: OutputRate, load_share: float | None, watched: ObservationWindow
    ) -> str:
        """Why it is not held although nothing was found, to follow the message; empty where it
        is."""
        if rate.unsent_ms and (self._is_too_long(rate.outage_ms) or self._is_poor(rate)):
            return f"; the load itself sent nothing for {rate.unsent_ms / 1000:.1f} s"
        if self._is_poor(rate) and self._load_was_poor(load_share):
            return f"; the load itself was at {load_share:.0%} of its usual rate then"
        if self._is_poor(rate) and _was_out(rate):
            return "; it had stopped before the fault was called"
        if self._is_too_long(rate.outage_ms):
            return (
                f"; already before the fault it stopped for {rate.usual_gap_ms / 1000:.1f} s, so "
                "that the limit proves nothing"
            )
        if self.least_share is not None and rate.least_share is None:
            return ", so that there is no share of the usual rate"
        # A usual gap may be in progress when another fault is called or the interval ends.
        started = rate.open_ms > max(UNUSUAL * rate.usual_gap_ms, LEAST_LIMIT_S * 1000)
        if started or (rate.outage_open and watched.cut_ns is None):
            ended = "the load ended" if watched.cut_ns is None else watched.cut_by
            return f"; it had not resumed when {ended}"
        return f"; {watched.reason_not_held}" if watched.reason_not_held else ""


def _was_out(rate: OutputRate) -> bool:
    """Whether an outage by an earlier fault lasted when the judged one was called."""
    return rate.silent_before_ms > UNUSUAL * rate.usual_gap_ms


def _began_later(output: AppendedRecords, rate: OutputRate, watched: ObservationWindow) -> bool:
    """Whether the outage began after the job ran again, so that it is a later fault's."""
    back_ns = watched.down_until_ns
    return back_ns is not None and rate.loaded_outage_from_ms > output.ms(back_ns)


def _cut_ms(output: AppendedRecords, watched: ObservationWindow) -> int | None:
    return None if watched.cut_ns is None else output.ms(watched.cut_ns)


def _rate(
    history: History, output: AppendedRecords, watched: ObservationWindow, stamps: Stamps
) -> OutputRate:
    """Raises UsualRateUnknown."""
    silences: list[Silence] = [
        (output.ms(silence.since_ns), output.ms(silence.until_ns))
        for silence in silences_of(history, watched.first_ns)
    ]
    return output_rate_of(
        stamps,
        output.ms(watched.start_ns),
        output.ms(watched.end_ns),
        _cut_ms(output, watched),
        first_ms=output.ms(watched.first_ns),
        silences=silences,
    )


def _load_share(
    history: History, output: AppendedRecords, rate: OutputRate, watched: ObservationWindow
) -> float | None:
    """The rate of the load around the worst second of the output, and in the second before it, as a
    share of its usual one; None where that is not known."""
    sent = sent_ranges_of(history)
    usual = sent_per_s(sent, watched.first_ns - USUAL_NS, watched.first_ns)
    if not usual:
        return None
    worst_ns = (rate.worst_from_ms - output.began_ms) * 1_000_000
    return sent_per_s(sent, worst_ns - 10**9, worst_ns + 10**9) / usual


def _figures(rate: OutputRate, stopped: int | None) -> dict[str, Any]:
    return {
        "outage_s": round(rate.outage_ms / 1000, 3),
        "usual_per_s": round(rate.usual_per_s, 1),
        "least_share": None if rate.least_share is None else round(rate.least_share, 4),
        "peak_share": None if rate.peak_share is None else round(rate.peak_share, 2),
        "available_share": round(rate.available_share, 4),
        "usual_gap_s": round(rate.usual_gap_ms / 1000, 3),
        "partitions_stopped": stopped,
    }


def _unclear_text(output: AppendedRecords, lane: StoppedPartition) -> str:
    since_s = _since_s(output, lane)
    return f"partition {lane.partition} has no record since {since_s:.1f} s, and {lane.unclear}"


def _worst_second(rate: OutputRate) -> str:
    if rate.least_share is None:
        return "most seconds before the fault had no output"
    usual = f"{rate.usual_per_s:,.0f} records"
    return f"its worst second had {rate.least_share:.0%} of the usual {usual}"


def _since_s(output: AppendedRecords, partition: StoppedPartition) -> float:
    return (partition.last_ms - output.began_ms) / 1000


def _stopped_finding(output: AppendedRecords, partition: StoppedPartition) -> Finding:
    detail = {
        "silent_ms": partition.silent_ms,
        "since_s": _since_s(output, partition),
        "usual_gap_ms": partition.usual_gap_ms,
        "keys": partition.keys,
    }
    return Finding(
        what="a partition stopped", where=f"{output.name}: {partition.partition}", detail=detail
    )


def _stamps(output: AppendedRecords) -> tuple[Stamps, Stamps]:
    """The append time and the partition of each record, as arrays of sixteen bytes per record in
    this process, not in Spark. Raises AppendTimesUnknown."""
    rows = output.records.select("timestamp_ms", "partition").toArrow()
    if not len(rows):
        raise AppendTimesUnknown(f"{output.name}: no record was written")
    stamps, lanes = (rows[name].to_numpy().astype(np.int64) for name in rows.column_names)
    return stamps, lanes
