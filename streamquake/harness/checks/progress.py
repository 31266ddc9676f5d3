"""Progress: the system worked at all, so the other checks had something to judge. Always on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from streamquake.harness.check import Case, Check, checks
from streamquake.reports.event import Action, Event
from streamquake.reports.outcome import CheckResult


@checks.register
class Progress(Check):
    """Undecided when too little was acknowledged, or nothing while or after the faults struck."""

    name: ClassVar[str] = "progress"

    records: Annotated[int, Field(ge=1)] = 100
    """How many records must be acknowledged for the run to mean anything."""

    def check(self, case: Case) -> CheckResult:
        sent = [e for e in case.history.of(Action.SENT) if e.value["status"] == "acknowledged"]
        acknowledged = sum(e.value["count"] for e in sent)
        effects = case.history.of(Action.FAULT_IN_EFFECT)
        since_fault = _since(sent, effects)
        checkpoints = len(case.history.of(Action.CHECKPOINT_COMPLETED))
        counts = {
            "acknowledged": acknowledged,
            "acknowledged_since_first_fault": since_fault,
            "checkpoints_completed": checkpoints,
        }
        if acknowledged < self.records:
            return self.undecided(
                f"only {acknowledged} records were acknowledged, {self.records} are needed",
                **counts,
            )
        if effects and not since_fault:
            return self.undecided(
                "no record was acknowledged after the first fault struck, so it disturbed nothing; "
                "send more records or strike earlier",
                **counts,
            )
        if case.experiment.job is not None and not checkpoints and case.experiment.checkpointed:
            return self.undecided("no checkpoint was completed in the whole run", **counts)
        return self.held(f"{acknowledged:,} records acknowledged", **counts)


def _since(sent: Sequence[Event], effects: Sequence[Event]) -> int:
    if not effects:
        return 0
    struck_ns = effects[0].value["seen_ns"]
    return sum(event.value["count"] for event in sent if event.at_ns >= struck_ns)
