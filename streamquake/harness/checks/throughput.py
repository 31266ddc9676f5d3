"""Throughput: how long nothing reliable came out, and how much in the worst and the best second.

Judged from the output itself, for any engine; see `harness/evidence/flow.py` for what counts.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from streamquake.harness.check import Case, Check, checks
from streamquake.harness.evidence.appended import Appended, NotAppended, appended
from streamquake.harness.evidence.flow import Flow, NotUsual, flow_of
from streamquake.harness.evidence.stretch import NoSpan, stretch
from streamquake.reports.outcome import CheckResult, Finding
from streamquake.topologies.limits import Limit, Share

LEAST_S = 1.0
"""The load must go on for a whole second at least after the strike."""


@checks.register
class Throughput(Check):
    """Held when the output never stopped for longer than the limit, and its worst second had the
    needed share of the usual one.

    From the first fault's strike until five seconds after the last heal or restart, as far as the
    load went on; `peak_share` looks further, to the last record. Undecided where the output stopped
    as long before any fault, or had not come back when the load ended.
    """

    name: ClassVar[str] = "throughput"

    outage_within_s: Annotated[Limit, Field(ge=0.5)]
    """The longest time in seconds without any record that is allowed."""
    least_share: Share | None = None
    """What the worst second must have of the median before the fault. Without it, not judged."""
    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""

    def check(self, case: Case) -> CheckResult:
        try:
            struck_ns, end_ns = stretch(case.history, LEAST_S)
            output = appended(case, self.output)
            stamps = _stamps(output)
            flow = flow_of(stamps, output.ms(struck_ns), output.ms(end_ns))
        except (NoSpan, NotAppended, NotUsual) as reason:
            return self.undecided(str(reason))
        figures: dict[str, Any] = {
            "outage_s": round(flow.outage_ms / 1000, 3),
            "usual_per_s": round(flow.usual_per_s, 1),
            "least_share": round(flow.least_share, 4),
            "peak_share": round(flow.peak_share, 2),
            "available_share": round(flow.available_share, 4),
            "usual_gap_s": round(flow.usual_gap_ms / 1000, 3),
        }
        return self._judged(output, flow, figures)

    def _judged(self, output: Appended, flow: Flow, figures: dict[str, Any]) -> CheckResult:
        limit_ms = self.outage_within_s * 1000
        said = (
            f"{output.name} stopped for {flow.outage_ms / 1000:.1f} s at most, "
            f"{self.outage_within_s:g} s allowed; its worst second had {flow.least_share:.0%} of "
            f"the usual {flow.usual_per_s:,.0f} records"
        )
        wrong = []
        if flow.outage_ms > limit_ms:
            since_s = (flow.outage_from_ms - output.began_ms) / 1000
            detail = {"gap_ms": flow.outage_ms, "since_s": since_s}
            wrong.append(Finding(what="an outage", where=output.name, detail=detail))
        if self.least_share is not None and flow.least_share < self.least_share:
            said += f", {self.least_share:.0%} needed"
            wrong.append(Finding(what="a poor second", where=output.name, detail=figures))
        if flow.usual_gap_ms > limit_ms:
            usual_s = flow.usual_gap_ms / 1000
            return self.undecided(
                f"before the fault, too, {output.name} stopped for {usual_s:.1f} s, so that a "
                f"limit of {self.outage_within_s:g} s tells nothing",
                **figures,
            )
        if not wrong and flow.outage_open:
            return self.undecided(f"{said}; it had not come back when the load ended", **figures)
        return self.violated(said, tuple(wrong), **figures) if wrong else self.held(said, **figures)


def _stamps(output: Appended) -> Any:
    """When each record was appended; eight bytes a record, here and not in Spark. Raises
    NotAppended."""
    rows = output.records.select("timestamp_ms").toArrow()
    stamps = rows["timestamp_ms"].to_numpy().astype(np.int64)
    if not len(stamps):
        raise NotAppended(f"{output.name}: nothing came out")
    return stamps
