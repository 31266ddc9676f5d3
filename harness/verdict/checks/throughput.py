"""Throughput: how long nothing reliable came out, and how much in the worst and the best second.

Judged from the output itself, for any engine; `harness/verdict/evidence/output_rate.py` says what
counts.
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
    appended,
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
    flow_of,
)
from streamquake.harness.verdict.evidence.stopped_partitions import StoppedPartition, stopped
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit, Share

LEAST_S = 1.0
"""The load must go on for a whole second at least after the injection."""
LEAST_LIMIT_S = 0.5
"""Shorter outages are not distinguished from what a broker's clock is off by, and none is
judged."""
UNUSUAL = 2
"""How many times as long as the longest gap before any fault an outage must be to be its doing."""


@checks.register
class Throughput(Check):
    """Held when the output never stopped for longer than the limit, and its worst second had the
    needed share of the usual one.

    From the first fault's call until five seconds after the last heal or restart, as far as the
    load went on; `peak_share` looks further, to the last record. A partition that went silent for
    good, although its keys were sent on, is violated too. Undecided where the longest outage is
    not clearly longer than one before any fault, where one was not over when the load ended or
    another fault was called, and where the job failed and was not seen running again.
    """

    name: ClassVar[str] = "throughput"
    classes: ClassVar[tuple[str, ...]] = ("an outage", "a poor second", "a partition stopped")

    outage_within_s: Annotated[Limit, Field(ge=LEAST_LIMIT_S)]
    """The longest time in seconds without any record that is allowed."""
    least_share: Share | None = None
    """What the worst second must have of the median before the fault. Without it, not judged."""
    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""
    fault: str | None = None
    """Judge only the outages after faults of this name; after all when left out."""

    def check(self, case: JudgedRun) -> CheckResult:
        try:
            watched = observation_window_of(case.history, LEAST_S, self.fault)
            output = appended(case, self.output)
            lanes = _stamps(output)
            injected_ms, end_ms = output.ms(watched.start_ns), output.ms(watched.end_ns)
            cut_ms = None if watched.cut_ns is None else output.ms(watched.cut_ns)
            flow = flow_of(lanes[0], injected_ms, end_ms, cut_ms)
        except (ObservationWindowUnknown, AppendTimesUnknown, UsualRateUnknown) as reason:
            return self.undecided(str(reason))
        silent = stopped(case, output, lanes, injected_ms, self._limit_ms, cut_ms)
        figures: dict[str, Any] = {
            "outage_s": round(flow.outage_ms / 1000, 3),
            "usual_per_s": round(flow.usual_per_s, 1),
            "least_share": None if flow.least_share is None else round(flow.least_share, 4),
            "peak_share": None if flow.peak_share is None else round(flow.peak_share, 2),
            "available_share": round(flow.available_share, 4),
            "usual_gap_s": round(flow.usual_gap_ms / 1000, 3),
            "partitions_stopped": len(silent),
        }
        return self._judged(output, flow, silent, watched, figures)

    @property
    def _limit_ms(self) -> float:
        return self.outage_within_s * 1000

    def _is_poor(self, flow: OutputRate) -> bool:
        if self.least_share is None or flow.least_share is None:
            return False
        return flow.least_share < self.least_share

    def _judged(
        self,
        output: AppendedRecords,
        flow: OutputRate,
        silent: Sequence[StoppedPartition],
        watched: ObservationWindow,
        figures: dict[str, Any],
    ) -> CheckResult:
        message = (
            f"{output.name} stopped for {flow.outage_ms / 1000:.1f} s at most, "
            f"{self.outage_within_s:g} s allowed; {_worst_second(flow)}"
        )
        wrong = [_stopped(output, lane) for lane in silent]
        if silent:
            message += f"; {len(silent)} of its partitions never came back"
        unusual = flow.outage_ms > UNUSUAL * flow.usual_gap_ms
        if flow.outage_ms > self._limit_ms and unusual:
            since_s = (flow.outage_from_ms - output.began_ms) / 1000
            detail = {"gap_ms": flow.outage_ms, "since_s": since_s}
            wrong.append(Finding(what="an outage", where=output.name, detail=detail))
        if self._is_poor(flow):
            message += f", {self.least_share:.0%} needed"
            wrong.append(Finding(what="a poor second", where=output.name, detail=figures))
        if wrong:
            return self.violated(message, tuple(wrong), **figures)
        if flow.outage_ms > self._limit_ms:
            return self.undecided(
                f"{message}; before the fault, too, it stopped for {flow.usual_gap_ms / 1000:.1f} "
                "s, so that the limit proves nothing",
                **figures,
            )
        if self.least_share is not None and flow.least_share is None:
            return self.undecided(f"{message}, so that there is no share of the usual", **figures)
        # When another fault is called, or the interval ends, any usual gap may be under way.
        started = flow.open_ms > max(UNUSUAL * flow.usual_gap_ms, LEAST_LIMIT_S * 1000)
        if started or (flow.outage_open and watched.cut_ns is None):
            ended = "the load ended" if watched.cut_ns is None else "another fault was called"
            return self.undecided(f"{message}; it had not come back when {ended}", **figures)
        if watched.not_back is not None:
            return self.undecided(f"{message}; {watched.not_back}", **figures)
        return self.held(message, **figures)


def _worst_second(flow: OutputRate) -> str:
    if flow.least_share is None:
        return "in most seconds before the fault nothing came out"
    usual = f"{flow.usual_per_s:,.0f} records"
    return f"its worst second had {flow.least_share:.0%} of the usual {usual}"


def _stopped(output: AppendedRecords, lane: StoppedPartition) -> Finding:
    detail = {
        "silent_ms": lane.silent_ms,
        "since_s": (lane.last_ms - output.began_ms) / 1000,
        "usual_gap_ms": lane.usual_gap_ms,
        "keys": lane.keys,
    }
    return Finding(
        what="a partition stopped", where=f"{output.name}: {lane.partition}", detail=detail
    )


def _stamps(output: AppendedRecords) -> tuple[Stamps, Stamps]:
    """When each record was appended, and its partition; sixteen bytes a record, here and not in
    Spark. Raises AppendTimesUnknown."""
    rows = output.records.select("timestamp_ms", "partition").toArrow()
    if not len(rows):
        raise AppendTimesUnknown(f"{output.name}: nothing came out")
    stamps, lanes = (rows[name].to_numpy().astype(np.int64) for name in rows.column_names)
    return stamps, lanes
