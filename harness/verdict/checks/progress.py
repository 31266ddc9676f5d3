"""Progress: the system processed records at all, so the other checks have evidence. Always on.

Every fault must have disturbed a load: records sent before its effect and acknowledged after it
prove nothing, so a range of records counts only if it was sent entirely after the effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.sent_times import SentRange, sent_ranges_of
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.fault_windows import FaultWindow, acted_windows
from streamquake.reports.record.outcome import CheckResult
from streamquake.reports.record.run_events import RecordsSent

LEAST = 100


@checks.register
class Progress(Check):
    """Undecided when too few records were acknowledged, or none since a fault took effect."""

    name: ClassVar[str] = "progress"

    records: Annotated[int, Field(ge=LEAST)] = LEAST
    """How many records must be acknowledged for the run to prove anything; an experiment cannot
    lower the minimum."""

    def check(self, case: JudgedRun) -> CheckResult:
        sent = [e for e in case.history.of(RecordsSent) if e.status == "acknowledged"]
        acknowledged = sum(e.count for e in sent)
        sent_ranges = sent_ranges_of(case.history)
        since = {
            window: _acknowledged_since(sent_ranges, window)
            for window in acted_windows(case.history)
        }
        checkpoints = len(case.history.of(CheckpointCompleted))
        counts: dict[str, Any] = {
            "acknowledged": acknowledged,
            "acknowledged_since_first_fault": next(iter(since.values()), 0),
            "acknowledged_since_last_fault": next(reversed(since.values()), 0),
            "checkpoints_completed": checkpoints,
        }
        if acknowledged < self.records:
            return self.undecided(
                f"only {acknowledged} records were acknowledged, {self.records} are needed",
                **counts,
            )
        if idle := [window for window, count in since.items() if not count]:
            names = ", ".join(f"{window.fault} (faults[{window.step}])" for window in idle)
            return self.undecided(
                f"no record was sent and acknowledged after {names} took effect, so it disturbed "
                "nothing; send more records or inject it earlier",
                **counts,
            )
        if case.experiment.job is not None and not checkpoints and case.experiment.checkpointed:
            return self.undecided("no checkpoint was completed in the whole run", **counts)
        return self.held(f"{acknowledged:,} records acknowledged", **counts)


def _acknowledged_since(sent_ranges: Sequence[SentRange], window: FaultWindow) -> int:
    effect_ns = round((window.in_effect_s or 0.0) * 1e9)
    # It is not known since when the records of the first event were sent.
    return sum(
        sent_range.last - sent_range.first + 1
        for sent_range in sent_ranges[1:]
        if sent_range.since_ns >= effect_ns
    )
