"""Rejected sends: the system accepted nearly everything that the load sent."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import RecordsSent


@checks.register
class RejectedSends(Check):
    """At most some records were rejected. A send whose status is unknown is not counted."""

    name: ClassVar[str] = "rejected_sends"
    classes: ClassVar[tuple[str, ...]] = ("rejected",)

    at_most: Annotated[int, Field(ge=0)] = 0
    """How many records may be rejected."""

    def check(self, case: JudgedRun) -> CheckResult:
        sent = case.history.of(RecordsSent)
        if not sent:
            return self.undecided("the history has no sends")
        rejected = [each for each in sent if each.status == "failed"]
        count = sum(each.count for each in rejected)
        if count <= self.at_most:
            return self.held(f"{count:,} sends rejected", rejected=count)
        findings = tuple(
            Finding(what="rejected", where=f"records {each.first} to {each.last}")
            for each in rejected
        )
        summary = f"{count:,} sends rejected, {self.at_most:,} may be"
        return self.violated(summary, findings, rejected=count)
