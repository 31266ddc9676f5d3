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
    Stamps,
    UsualRateUnknown,
    output_rate_of,
)
from streamquake.harness.verdict.evidence.stopped_partitions import (
    StoppedPartition,
    stopped_partitions,
)
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit, Share

LEAST_S = 1.0
"""The load must continue for at least a whole second after the injection."""
LEAST_LIMIT_S = 0.5
"""Shorter outages cannot be distinguished from errors of a broker's clock and are not judged."""
UNUSUAL = 2
"""An outage must be longer than this multiple of the longest gap before any fault to count as its
effect."""


@checks.register
class Throughput(Check):
    """Held when the output never stopped for longer than the limit, and its worst second had the
    needed share of the usual one.

    It counts from the first fault's call until five seconds after the last heal or restart, but not
    after the load; `peak_share` counts until the last record. A partition that stopped for good,
    although its keys were still sent, is a violation too. Undecided where the longest outage is not
    clearly longer than one before any fault, where one was not over when the load ended or another
    fault was called, and where the job failed and was not seen running again.
    """

    name: ClassVar[str] = "throughput"
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
            injected_ms, end_ms = output.ms(watched.start_ns), output.ms(watched.end_ns)
            cut_ms = None if watched.cut_ns is None else output.ms(watched.cut_ns)
            rate = output_rate_of(lanes[0], injected_ms, end_ms, cut_ms)
        except (ObservationWindowUnknown, AppendTimesUnknown, UsualRateUnknown) as reason:
            return self.undecided(str(reason))
        stopped = stopped_partitions(case, output, lanes, injected_ms, self._limit_ms, cut_ms)
        figures: dict[str, Any] = {
            "outage_s": round(rate.outage_ms / 1000, 3),
            "usual_per_s": round(rate.usual_per_s, 1),
            "least_share": None if rate.least_share is None else round(rate.least_share, 4),
            "peak_share": None if rate.peak_share is None else round(rate.peak_share, 2),
            "available_share": round(rate.available_share, 4),
            "usual_gap_s": round(rate.usual_gap_ms / 1000, 3),
            "partitions_stopped": len(stopped),
        }
        return self._judge(output, rate, stopped, watched, figures)

    @property
    def _limit_ms(self) -> float:
        return self.outage_within_s * 1000

    def _is_poor(self, rate: OutputRate) -> bool:
        if self.least_share is None or rate.least_share is None:
            return False
        return rate.least_share < self.least_share

    def _judge(
        self,
        output: AppendedRecords,
        rate: OutputRate,
        stopped: Sequence[StoppedPartition],
        watched: ObservationWindow,
        figures: dict[str, Any],
    ) -> CheckResult:
        message = (
            f"{output.name} stopped for {rate.outage_ms / 1000:.1f} s at most, "
            f"{self.outage_within_s:g} s allowed; {_worst_second(rate)}"
        )
        findings = [_stopped_finding(output, partition) for partition in stopped]
        if stopped:
            message += f"; {len(stopped)} of its partitions never resumed"
        unusual = rate.outage_ms > UNUSUAL * rate.usual_gap_ms
        if rate.outage_ms > self._limit_ms and unusual:
            since_s = (rate.outage_from_ms - output.began_ms) / 1000
            detail = {"gap_ms": rate.outage_ms, "since_s": since_s}
            findings.append(Finding(what="an outage", where=output.name, detail=detail))
        if self._is_poor(rate):
            message += f", {self.least_share:.0%} needed"
            findings.append(Finding(what="a poor second", where=output.name, detail=figures))
        if findings:
            return self.violated(message, tuple(findings), **figures)
        if rate.outage_ms > self._limit_ms:
            return self.undecided(
                f"{message}; already before the fault it stopped for "
                f"{rate.usual_gap_ms / 1000:.1f} s, so that the limit proves nothing",
                **figures,
            )
        if self.least_share is not None and rate.least_share is None:
            return self.undecided(
                f"{message}, so that there is no share of the usual rate", **figures
            )
        # A usual gap may be in progress when another fault is called or the interval ends.
        started = rate.open_ms > max(UNUSUAL * rate.usual_gap_ms, LEAST_LIMIT_S * 1000)
        if started or (rate.outage_open and watched.cut_ns is None):
            ended = "the load ended" if watched.cut_ns is None else "another fault was called"
            return self.undecided(f"{message}; it had not resumed when {ended}", **figures)
        if watched.reason_not_held is not None:
            return self.undecided(f"{message}; {watched.reason_not_held}", **figures)
        return self.held(message, **figures)


def _worst_second(rate: OutputRate) -> str:
    if rate.least_share is None:
        return "most seconds before the fault had no output"
    usual = f"{rate.usual_per_s:,.0f} records"
    return f"its worst second had {rate.least_share:.0%} of the usual {usual}"


def _stopped_finding(output: AppendedRecords, partition: StoppedPartition) -> Finding:
    detail = {
        "silent_ms": partition.silent_ms,
        "since_s": (partition.last_ms - output.began_ms) / 1000,
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
