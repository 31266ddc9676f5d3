"""Recovery: after the faults the system came back by itself, in time."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from streamquake.harness.check import Case, Check, checks
from streamquake.harness.evidence.recovery import Recovery as Phases
from streamquake.harness.evidence.recovery import recovery_of
from streamquake.harness.evidence.waits import Wait, failed_waits
from streamquake.reports.outcome import CheckResult, Finding


@checks.register
class Recovery(Check):
    """Held when output flows and a checkpoint completes within the limit of the fault's effect."""

    name: ClassVar[str] = "recovery"

    within_s: Annotated[float, Field(gt=0, strict=False)] = 60.0
    """Seconds from the first fault's effect to the first checkpoint and output after it."""

    def check(self, case: Case) -> CheckResult:
        for failed in failed_waits(case.history):
            if failed.wait == Wait.RECOVERY:
                detail = {"reason": failed.reason}
                finding = Finding(what="not recovered", where=f"{failed.at_s:.1f} s", detail=detail)
                return self.violated(f"the system did not come back: {failed.reason}", (finding,))
        phases = recovery_of(case.history, case.metrics, only_files=case.experiment.only_files)
        if phases is None:
            return self.undecided("no fault took effect, so there was nothing to recover from")
        counts = phases.to_json()
        if (missing := _missing(phases, case.experiment.checkpointed)) is not None:
            return self.undecided(missing, (), **counts)
        took_s = max(phases.first_output_s or 0.0, phases.first_checkpoint_s or 0.0)
        said = f"{_story(phases)}; {took_s:.1f} s in all, {self.within_s:g} s allowed"
        if took_s > self.within_s:
            late = Finding(what="too late", detail=counts)
            return self.violated(said, (late,), **counts)
        return self.held(said, **counts)


def _missing(phases: Phases, checkpointed: bool) -> str | None:
    """What was not seen although the run waited for recovery; such a run proves nothing."""
    if phases.first_output_s is None:
        return "no output was seen after the system resumed; send more records after the fault"
    if checkpointed and phases.first_checkpoint_s is None:
        return "no checkpoint was seen to complete after the system resumed"
    return None


def _story(phases: Phases) -> str:
    moments = (
        ("detected", phases.detected_s),
        ("running again", phases.restarted_s),
        ("output", phases.first_output_s),
        ("checkpoint", phases.first_checkpoint_s),
        ("lag normal", phases.lag_normal_s),
    )
    said = [f"{word} after {moment:.1f} s" for word, moment in moments if moment is not None]
    return ", ".join(said) if phases.detected_s is not None else f"no restart: {', '.join(said)}"
