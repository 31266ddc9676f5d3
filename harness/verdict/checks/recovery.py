"""Recovery: after each fault the system recovered by itself, in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.down_by_itself import (
    down_by_itself_since_ns,
    down_message,
)
from streamquake.harness.verdict.evidence.recovery import (
    RECORDED_LATER_S,
    main_recovery,
    recoveries_from_heal,
    recoveries_of,
    recoveries_until_next_effect,
)
from streamquake.harness.verdict.evidence.recovery import RecoveryPhases as Phases
from streamquake.harness.verdict.evidence.unexplained_ends import ended_from_outside, how
from streamquake.harness.verdict.evidence.waits import FailedWait, Wait, failed_waits
from streamquake.reports.record.fault_windows import acted_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.topologies.limits import Limit


@checks.register
class Recovery(Check):
    """Held when after each fault output flows and a checkpoint completes, within the limit from its
    effect, which a fault without a failure may outlast. If the next fault takes effect within the
    limit, the next recovery is judged instead. If faults overlapped, or the system was back before
    the heal, the same is required within the limit from the last heal. If the last of several
    faults caused no failure, and nothing was sent after its heal, it is enough that the run
    drained.

    Undecided where an output that grew until a fault never grew again; where no output or no
    checkpoint was seen after the last heal; where a failed job had not recovered in time when the
    next fault took effect, if that fault was called within the limit, or caused no failure itself;
    where a checkpoint alone shows that a failed job ran again, or its events differ in when it was
    triggered; where the system did not recover, but a heal was not verified; and where it was late
    or did not recover, but the job was down by itself when the fault was called, or since 30 s
    before that a node was ended by a signal or was out of memory, which no fault did."""

    name: ClassVar[str] = "recovery"
    classes: ClassVar[tuple[str, ...]] = ("not recovered", "too late")

    within_s: Limit = 60.0
    """Seconds from a fault's effect to the first checkpoint and output after it."""
    fault: str | None = None
    """Judge only the recoveries from the faults of this name; from all when left out."""

    def check(self, case: JudgedRun) -> CheckResult:
        for failed in failed_waits(case.history):
            if failed.wait == Wait.RECOVERY:
                return self._not_recovered(failed, case.history)
        recorded = _recorded(recoveries_of, case)
        found = self._judged(recorded)
        # If the system was back before the heal, its continued output proves nothing new: only a
        # violation after the heal counts.
        after_heals = self._judged(_recorded(recoveries_from_heal, case))
        from_heal = [
            each for each in after_heals if not each.was_back or self._is_violation(each, case)
        ]
        if not found:
            return self.undecided("no fault took effect, so there was nothing to recover from")
        result = self._judge(found, from_heal, case.experiment.checkpointed)
        if result.outcome != Outcome.HELD:
            return result
        if (late := self._late_beyond_next(recorded, case)) is not None:
            return self.undecided(f"{late}; {self.within_s:g} s allowed", (), **result.counts)
        for each in after_heals:
            missing = _missing(each, case.experiment.checkpointed)
            # Where the load ended with the heal there may be nothing more to write.
            if missing and each.until_s is None and each.loaded_s > RECORDED_LATER_S:
                return self.undecided(f"{_prefix(each, found)}{missing}", (), **result.counts)
        return result

    def _not_recovered(self, failed: FailedWait, history: History) -> CheckResult:
        """The system did not recover after the faults: undecided where that may have another
        cause."""
        windows = acted_windows(history)
        message = f"the system did not recover: {failed.reason}"
        if not windows:
            return self.undecided(f"{message}; no fault took effect")
        for window in windows:
            if window.healed_s is None:
                return self.undecided(f"{message}; the heal of {window.fault} was not verified")
        called_ns = round(max(window.called_s for window in windows) * 1e9)
        if (down_ns := down_by_itself_since_ns(history, called_ns)) is not None:
            return self.undecided(f"{message}; {down_message(down_ns)}")
        if (outside := next(ended_from_outside(history), None)) is not None:
            return self.undecided(f"{message}; {how(outside)}, which no fault did")
        if self.fault not in (None, last := windows[-1].fault):
            return self.undecided(f"{message}; the last fault was {last}")
        detail = {"reason": failed.reason}
        finding = Finding(what="not recovered", where=f"{failed.at_s:.1f} s", detail=detail)
        return self.violated(message, (finding,))

    def _late_beyond_next(self, recorded: Sequence[Phases], case: JudgedRun) -> str | None:
        """The recovery from a failure that was late although its fault's own interval, and that of
        the next fault, show no late one; None without any."""
        found, checkpointed = self._judged(recorded), case.experiment.checkpointed
        for each in self._judged(_recorded(recoveries_until_next_effect, case)):
            if self._is_over_limit(each, checkpointed):
                return (
                    f"{_prefix(each, found)}the job failed and had not recovered "
                    f"{each.watched_s:.1f} s after it, when the next fault took effect"
                )
        for failed, back in _continued_failures(recorded, checkpointed):
            took_s = back.effect_at_s - failed.effect_at_s + _duration_s(back, checkpointed)
            if self.fault in (None, failed.fault) and took_s > self.within_s:
                return (
                    f"{_prefix(failed, found)}the job failed and had not recovered when the next "
                    f"fault was called, which caused no failure; {took_s:.1f} s in all"
                )
        return None

    def _judged(self, recorded: Sequence[Phases]) -> list[Phases]:
        """The recoveries of the faults that it judges."""
        return [each for each in recorded if self.fault in (None, each.fault)]

    def _judge(
        self, found: Sequence[Phases], from_heal: Sequence[Phases], checkpointed: bool
    ) -> CheckResult:
        counts = _counts(found, checkpointed)
        late = tuple(
            Finding(what="too late", where=_name_of(each, found), detail=each.to_json())
            for each in (*found, *from_heal)
            if self._is_late(each, checkpointed)
        )
        message = "; ".join(
            self._text_of(each, found, checkpointed) for each in (*found, *from_heal)
        )
        if late:
            return self.violated(message, late, **counts)
        for each in (*found, *from_heal):
            if self._is_over_limit(each, checkpointed) and each.other_cause:
                return self.undecided(f"{message}; {each.other_cause}", (), **counts)
        # A recovery that the next fault cut off is judged by the next recovery.
        judged = [each for each in found if not _only_drained(each)] or found
        last = [each for each in from_heal if each.until_s is None]
        for each in (*(judged[-1:] if self.fault is None else judged), *last):
            if missing := _missing(each, checkpointed):
                return self.undecided(f"{_prefix(each, found)}{missing}", (), **counts)
        for each in (*found, *last):
            if each.uncertainty:
                return self.undecided(f"{_prefix(each, found)}{each.uncertainty}", (), **counts)
        return self.held(message, **counts)

    def _is_late(self, each: Phases, checkpointed: bool) -> bool:
        """Whether the fault alone made it late."""
        return self._is_over_limit(each, checkpointed) and not each.other_cause

    def _is_over_limit(self, each: Phases, checkpointed: bool) -> bool:
        return not each.unclear and _duration_s(each, checkpointed) > self.within_s

    def _is_violation(self, each: Phases, case: JudgedRun) -> bool:
        """Whether it is late although records were sent for as long as the limit."""
        late = self._is_late(each, case.experiment.checkpointed)
        return late and each.loaded_s > self.within_s

    def _text_of(self, each: Phases, found: Sequence[Phases], checkpointed: bool) -> str:
        overlaps = f"; overlaps {', '.join(each.overlaps)}" if each.overlaps else ""
        took_s, prefix = _duration_s(each, checkpointed), _prefix(each, found)
        allowed = f"{self.within_s:g} s allowed"
        if each.unclear:
            return f"{prefix}{_missing(each, checkpointed)}{overlaps}"
        if _only_drained(each) and took_s <= self.within_s:
            return f"{prefix}nothing was sent after its heal, and the run drained{overlaps}"
        restarted_late = each.restarted_s is not None and each.restarted_s > self.within_s
        if (missing := _missing(each, checkpointed)) is not None and not restarted_late:
            return f"{prefix}{missing}, {took_s:.1f} s after it, {allowed}{overlaps}"
        return f"{prefix}{_phases(each)}; {took_s:.1f} s in all, {allowed}{overlaps}"


def _recorded(find: Callable[..., Sequence[Phases]], case: JudgedRun) -> Sequence[Phases]:
    return find(case.history, case.metrics, only_files=case.experiment.only_files)


def _continued_failures(
    recorded: Sequence[Phases], checkpointed: bool
) -> Iterator[tuple[Phases, Phases]]:
    """Each recovery from a failure that was not complete when the next fault was called, with that
    of a later fault that shows it: no fault between them caused a failure."""
    failed: Phases | None = None
    for each in recorded:
        missing = _missing(each, checkpointed)
        if each.detected_s is not None:
            failed = each if missing else None
        elif failed is not None and not missing:
            yield failed, each
            failed = None


def _only_drained(each: Phases) -> bool:
    """Whether nothing failed, and nothing was sent after the heal that could be written."""
    return each.drained and each.detected_s is None and each.first_output_s is None


def _duration_s(each: Phases, checkpointed: bool) -> float:
    """How long the system had not recovered: a lower bound where its recovery was not observed.
    Output only counts as missing while records were sent."""
    if each.detected_s is not None and each.restarted_s is None:
        return each.watched_s
    if each.first_output_s is None:
        return max(each.loaded_s, each.restarted_s or 0.0)
    if checkpointed and each.first_checkpoint_s is None:
        return each.watched_s
    return max(each.first_output_s, each.first_checkpoint_s or 0.0)


def _missing(each: Phases, checkpointed: bool) -> str | None:
    """The missing evidence of a recovery; None where nothing is missing."""
    until = "" if each.until_s is None else " before the next fault"
    if each.unclear:
        return f"{each.unclear}{until}"
    if each.detected_s is not None and each.restarted_s is None:
        return f"the job failed and was not seen to run again{until}"
    if each.first_output_s is None:
        return f"no output was seen after the system resumed{until}; send more records after it"
    if checkpointed and each.first_checkpoint_s is None:
        return f"no checkpoint was seen to complete after the system resumed{until}"
    return None


def _counts(found: Sequence[Phases], checkpointed: bool) -> dict[str, Any]:
    """The phases of the main recovery, and the longest of all."""
    known = [_duration_s(each, checkpointed) for each in found if not each.unclear]
    longest_s = round(max(known), 3) if known else None
    phases = [each.to_json() for each in found]
    return {**phases[main_recovery(phases)], "faults": len(found), "longest_s": longest_s}


def _name_of(each: Phases, found: Sequence[Phases]) -> str:
    if each.from_heal:
        return f"heal of {each.fault} (faults[{each.step}])"
    return "" if len(found) == 1 else f"{each.fault} (faults[{each.step}])"


def _prefix(each: Phases, found: Sequence[Phases]) -> str:
    title = _name_of(each, found)
    return f"{title}: " if title else ""


def _phases(phases: Phases) -> str:
    moments = (
        ("detected", phases.detected_s),
        ("running again", phases.restarted_s),
        ("output", phases.first_output_s),
        ("checkpoint", phases.first_checkpoint_s),
        ("lag normal", phases.lag_normal_s),
    )
    message = [f"{word} after {moment:.1f} s" for word, moment in moments if moment is not None]
    return (
        ", ".join(message) if phases.detected_s is not None else f"no restart: {', '.join(message)}"
    )
