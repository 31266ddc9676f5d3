"""Effect: every fault took effect in time, lasted, and its removal was verified. Always on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.harness.verdict.evidence.step_problems import idle_reason, step_problems
from streamquake.reports.record.fault_events import FaultHealed, FaultInEffect
from streamquake.reports.record.fault_windows import (
    FaultWindow,
    acted_windows,
    fault_windows,
    overlapping,
)
from streamquake.reports.record.outcome import CheckResult, Finding


@checks.register
class Effect(Check):
    """Undecided when a planned fault was not injected, had no verified effect, disturbed only the
    harness's own probe, was to end tasks where none ran, was injected on other targets than planned
    or not on all of them, before its trigger or outside its window, ended or was healed too early,
    was not verified again until its heal, or was not verified as healed, when what was observed
    contradicts that, or what the engines, the containers and the load reported, when its events are
    not in their order, and when an unplanned fault is recorded. Whether the metric of a trigger had
    its value is not judged. Names the faults that overlapped.
    """

    name: ClassVar[str] = "effect"

    idle_allowed: bool = False
    """Whether faults may disturb nothing but the harness's own probe because the system was idle,
    as long as one fault disturbed the system. For random schedules, which need no particular fault.
    """

    def check(self, case: JudgedRun) -> CheckResult:
        planned = len(case.experiment.faults)
        attempts = [last_attempt(case.history, step) for step in range(planned)]
        idle = {
            step: why
            for step, attempt in enumerate(attempts)
            if (why := idle_reason(step, attempt, case.history))
        }
        counted = idle if not self.idle_allowed or len(idle) == planned else {}
        missing = [
            Finding(what=what, where=f"faults[{step}]", detail={"reason": why})
            for step, attempt in enumerate(attempts)
            for what, why in step_problems(
                attempt, step, case.experiment, case.history, counted.get(step, "")
            )
        ]
        missing += _unplanned_faults(fault_windows(case.history), planned)
        counts = {
            "planned": planned,
            "in_effect": sum(FaultInEffect in attempt for attempt in attempts),
            "healed": sum(FaultHealed in attempt for attempt in attempts),
        }
        if idle:
            counts["idle"] = len(idle)
        overlaps = _overlaps(acted_windows(case.history))
        if overlaps:
            counts["overlapping"] = len(overlaps)
        if missing:
            reasons = "; ".join(f"{f.where} {f.what}: {f.detail['reason']}" for f in missing[:3])
            return self.undecided(reasons, tuple(missing), **counts)
        if planned == 0:
            return self.held("no fault was planned", **counts)
        message = f"{planned} of {planned} faults verified in effect and healed"
        recorded = (f"faults[{step}] {why}" for step, why in idle.items())
        return self.held("; ".join((message, *recorded, *overlaps)), **counts)


def _overlaps(windows: Sequence[FaultWindow]) -> list[str]:
    """The pairs of faults that acted at the same time, each once."""
    return [
        f"{_window_name(window)} and {_window_name(other)} overlapped"
        for number, window in enumerate(windows)
        for other in overlapping(window, windows[number + 1 :])
    ]


def _window_name(window: FaultWindow) -> str:
    return f"faults[{window.step}] {window.fault}"


def _unplanned_faults(windows: Sequence[FaultWindow], planned: int) -> Iterator[Finding]:
    """Recorded faults that the plan does not have."""
    for window in windows:
        if not 0 <= window.step < planned:
            detail = {"reason": f"{window.fault or 'a fault'} is recorded there"}
            yield Finding(what="not planned", where=f"faults[{window.step}]", detail=detail)
