"""Effect: every fault of the schedule bit, and was seen to be gone afterwards. Always on."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.check import Case, Check, checks
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History
from streamquake.reports.outcome import CheckResult, Finding


@checks.register
class Effect(Check):
    """Undecided when a planned fault did not strike, was not seen to bite, or not seen to go."""

    name: ClassVar[str] = "effect"

    def check(self, case: Case) -> CheckResult:
        planned = len(case.experiment.faults)
        bitten = steps_of(case.history, Action.FAULT_IN_EFFECT)
        healed = steps_of(case.history, Action.FAULT_HEALED)
        missing = [
            Finding(what=what, where=f"faults[{step}]", detail={"reason": why})
            for step in range(planned)
            for what, why in _missing(case.history, step, bitten, healed)
        ]
        counts = {"planned": planned, "in_effect": len(bitten), "healed": len(healed)}
        if missing:
            reasons = "; ".join(f"{f.where} {f.what}: {f.detail['reason']}" for f in missing[:3])
            return self.undecided(reasons, tuple(missing), **counts)
        if planned == 0:
            return self.held("no fault was planned", **counts)
        return self.held(f"{planned} of {planned} faults seen to bite and seen gone", **counts)


def steps_of(history: History, action: Action) -> set[int]:
    """The numbers of the steps for which an action is in the history."""
    return {event.value["step"] for event in history.of(action)}


def _missing(
    history: History, step: int, bitten: set[int], healed: set[int]
) -> list[tuple[str, str]]:
    if step not in bitten:
        skipped = _last(history, step, Action.FAULT_SKIPPED, Action.FAULT_NOT_IN_EFFECT)
        return [("not in effect", skipped.value["reason"] if skipped else "it was never tried")]
    if step not in healed:
        failed = _last(history, step, Action.FAULT_NOT_HEALED)
        return [("not healed", failed.value["reason"] if failed else "no heal was seen")]
    return []


def _last(history: History, step: int, *actions: Action) -> Event | None:
    return next((e for e in reversed(history.of(*actions)) if e.value["step"] == step), None)
