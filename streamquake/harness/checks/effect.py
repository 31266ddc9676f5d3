"""Effect: every fault of the schedule bit in time and was seen gone afterwards. Always on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from streamquake.harness.check import Case, Check, checks
from streamquake.harness.evidence.tries import last_try
from streamquake.reports.event import Action, Event
from streamquake.reports.outcome import CheckResult, Finding


@checks.register
class Effect(Check):
    """Undecided when a planned fault did not strike, was not seen to bite, or not seen to go."""

    name: ClassVar[str] = "effect"

    def check(self, case: Case) -> CheckResult:
        planned = len(case.experiment.faults)
        tries = [last_try(case.history, step) for step in range(planned)]
        missing = [
            Finding(what=what, where=f"faults[{step}]", detail={"reason": why})
            for step, tried in enumerate(tries)
            for what, why in _missing(tried)
        ]
        counts = {
            "planned": planned,
            "in_effect": sum(Action.FAULT_IN_EFFECT in tried for tried in tries),
            "healed": sum(Action.FAULT_HEALED in tried for tried in tries),
        }
        if missing:
            reasons = "; ".join(f"{f.where} {f.what}: {f.detail['reason']}" for f in missing[:3])
            return self.undecided(reasons, tuple(missing), **counts)
        if planned == 0:
            return self.held("no fault was planned", **counts)
        return self.held(f"{planned} of {planned} faults seen to bite and seen gone", **counts)


def _missing(tried: Mapping[Action, Event]) -> list[tuple[str, str]]:
    if Action.FAULT_IN_EFFECT not in tried:
        untried = tried.get(Action.FAULT_SKIPPED) or tried.get(Action.FAULT_NOT_IN_EFFECT)
        return [("not in effect", untried.value["reason"] if untried else "it was never tried")]
    found = []
    if (late := tried.get(Action.FAULT_MISSED_WINDOW)) is not None:
        found.append(("not in its window", late.value["reason"]))
    if Action.FAULT_HEALED not in tried:
        failed = tried.get(Action.FAULT_NOT_HEALED)
        found.append(("not healed", failed.value["reason"] if failed else "no heal was seen"))
    return found
