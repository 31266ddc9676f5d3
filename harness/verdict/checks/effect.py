"""Effect: every fault took effect in time, lasted, and its removal was verified. Always on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import left_out_of_target, outside_target, parse_target
from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.contradicted_evidence import (
    contradicted_effect,
    contradicted_heal,
)
from streamquake.harness.verdict.evidence.disturbed_traffic import targets_of_probe_alone
from streamquake.harness.verdict.evidence.heal_evidence import (
    CLOCK_S,
    not_healed,
    unhealed_earlier_attempt,
)
from streamquake.harness.verdict.evidence.idle_nodes import nodes_without_tasks
from streamquake.harness.verdict.evidence.last_verification import not_verified_until_heal
from streamquake.harness.verdict.evidence.missed_windows import outside_window
from streamquake.harness.verdict.evidence.node_ends import ended_before_call, started_early
from streamquake.harness.verdict.evidence.planned_duration import early_end, early_heal
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, last_attempt
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_problem
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultHealed,
    FaultInEffect,
    FaultMissedWindow,
    FaultNotInEffect,
    FaultNotVerified,
    FaultSkipped,
    FaultStillInEffect,
    HealCalled,
    ObservedFaultEvent,
)
from streamquake.reports.record.fault_windows import (
    FaultWindow,
    acted_windows,
    fault_windows,
    overlapping,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.topologies.model import Topology


@checks.register
class Effect(Check):
    """Undecided when a planned fault was not injected, had no verified effect, disturbed only the
    harness's own probe, was to end tasks where none ran, was injected on other targets than planned
    or not on all of them, before its trigger or outside its window, ended or was healed too early,
    was not verified again until its heal, or was not verified as healed, when what was observed
    contradicts that, and when an unplanned fault is recorded. Whether the metric of a trigger had
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
            if (why := _idle(step, attempt, case.history))
        }
        counted = idle if not self.idle_allowed or len(idle) == planned else {}
        missing = [
            Finding(what=what, where=f"faults[{step}]", detail={"reason": why})
            for step, attempt in enumerate(attempts)
            for what, why in _problems_of(attempt, step, case, counted.get(step, ""))
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


def _problems_of(
    attempt: StepAttempt, number: int, case: JudgedRun, idle: str
) -> list[tuple[str, str]]:
    """What is wrong with a fault, each with its reason."""
    step, history = case.experiment.faults[number], case.history
    if FaultInEffect not in attempt:
        skipped = attempt.get(FaultSkipped) or attempt.get(FaultNotInEffect)
        return [("not in effect", skipped.reason if skipped else "it was never attempted")]
    if attempt[FaultInEffect].value.get("seen_ns") is None:
        return [("without evidence", "the moment of its effect is not recorded")]
    problems = [
        *_contradictions(step, attempt, case.experiment.topology),
        *_effect_problems(step, attempt, history),
    ]
    if (late := attempt.get(FaultMissedWindow)) is not None:
        problems.append(("not in its window", late.reason))
    if idle:
        problems.append(("without effect on the system", idle))
    problems += _trigger_problems(step, attempt, history, case.experiment.faults[:number])
    problems += _duration_problems(step, attempt, history)
    unhealed = not_healed(attempt, history)
    if unhealed := unhealed or unhealed_earlier_attempt(fault_windows(history), number):
        problems.append(("not healed", unhealed))
    problems += [("contradictory evidence", why) for why in contradicted_heal(step, attempt)]
    return problems


def _effect_problems(
    step: Step, attempt: StepAttempt, history: History
) -> Iterator[tuple[str, str]]:
    """Evidence against a recorded effect."""
    for why in contradicted_effect(step, attempt[FaultInEffect], history):
        yield "contradictory evidence", why
    if (denied := attempt.get(FaultSkipped) or attempt.get(FaultNotInEffect)) is not None:
        yield "contradictory evidence", f"it is also recorded that {denied.reason}"
    if other := _other_injection(step, attempt):
        yield "another injection", other
    if observed_early := _observed_before_call(attempt):
        yield "without evidence", observed_early
    if ended_before := ended_before_call(step, attempt, history):
        yield "without evidence", ended_before


def _trigger_problems(
    step: Step, attempt: StepAttempt, history: History, before: Sequence[Step]
) -> Iterator[tuple[str, str]]:
    """Why it was not injected by its trigger, within its window. `before` are the earlier steps."""
    called = attempt.get(FaultCalled)
    if called is None and attempt[FaultInEffect].called_ns is not None:
        yield "without evidence", "its call is not recorded, and its effect names one"
    if untimely := trigger_problem(step.when, called, history, before):
        yield "not by its trigger", untimely
    elif outside := outside_window(step.when, attempt, history):
        yield "not in its window", outside


def _duration_problems(
    step: Step, attempt: StepAttempt, history: History
) -> Iterator[tuple[str, str]]:
    """Why it did not last as planned, or was not verified until its heal."""
    if ended := early_end(step, attempt):
        yield "ended early", ended
    elif healed := early_heal(step, attempt, history):
        yield "healed early", healed
    elif started := started_early(step, attempt, history):
        yield "ended early", started
    if (unverified := attempt.get(FaultNotVerified)) is not None:
        yield "not verified again", unverified.reason
    elif unreported := _unrecorded_verification(attempt):
        yield "not verified again", unreported
    elif unverified_again := not_verified_until_heal(step, attempt, history):
        yield "not verified again", unverified_again


def _observed_before_call(attempt: StepAttempt) -> str:
    """A message if the effect was observed before the injection was called, so that it was not this
    fault's effect; else empty."""
    in_effect, called = attempt[FaultInEffect], attempt.get(FaultCalled)
    called_ns = in_effect.called_ns
    if called_ns is None:
        called_ns = in_effect.at_ns if called is None else called.at_ns
    before_s = (called_ns - in_effect.moment_ns) / 1e9
    if before_s <= CLOCK_S:
        return ""
    return f"its effect was seen {before_s:.1f} s before its injection was called"


def _unrecorded_verification(attempt: StepAttempt) -> str:
    """A message if the heal names a last verification of which the record has no evidence; else
    empty. Records of older versions do not have that moment."""
    called = attempt.get(HealCalled)
    last_ns = called.last_seen_ns if called is not None else None
    began = attempt[FaultInEffect]
    newest = attempt.get(FaultStillInEffect) or began
    if last_ns is None or last_ns == newest.seen_ns:
        return ""
    after_s = (last_ns - began.moment_ns) / 1e9
    return (
        f"the record has no evidence of its last verification, {after_s:.1f} s after it took effect"
    )


def _contradictions(
    step: Step, attempt: StepAttempt, topology: Topology
) -> Iterator[tuple[str, str]]:
    """Contradictions to a recorded effect: another fault or other targets than planned, other
    targets than those of the call, or targets without evidence at the first or the last
    verification. Records of older versions may lack the fault and the targets."""
    in_effect, called = attempt[FaultInEffect], attempt.get(FaultCalled)
    fault, targets, evidence = (
        in_effect.value.get("fault", step.fault),
        in_effect.nodes,
        in_effect.evidence,
    )
    if fault != step.fault:
        yield "another fault", f"{step.fault} was planned, and {fault} is recorded"
    if targets is None and evidence is not None and called is not None:
        targets = called.nodes
    if targets is None:
        return
    called_on = targets if called is None or called.nodes is None else called.nodes
    if targets and set(called_on) != set(targets):
        chosen, seen = ", ".join(called_on) or "nothing", ", ".join(targets)
        yield "another target", f"it was called on {chosen}, and its effect was seen on {seen}"
    planned = parse_target(step.target)
    if unplanned := outside_target(planned, targets, topology):
        yield "another target", f"{step.target} was planned, and {', '.join(unplanned)} is recorded"
    elif targets and (left_out := left_out_of_target(planned, targets, topology)):
        yield "another target", f"{step.target} was planned, and not {', '.join(left_out)}"
    if unseen := _unseen_targets(targets, in_effect):
        yield "without evidence", f"no effect was seen on {', '.join(unseen)}"
    if unseen := _unseen_targets(targets, attempt.get(FaultStillInEffect)):
        yield "not verified again", f"its last verification saw no effect on {', '.join(unseen)}"
    if not targets:
        yield "without evidence", "it was injected on no target"


def _unseen_targets(targets: Sequence[str], verification: ObservedFaultEvent | None) -> list[str]:
    """The targets of which a recorded verification has no evidence."""
    if verification is None:
        return []
    return [target for target in targets if not (verification.evidence or {}).get(target)]


def _other_injection(step: Step, attempt: StepAttempt) -> str:
    """A message if the call has another fault, another target or other parameters than planned;
    else empty. Histories have no secrets."""
    called = attempt.get(FaultCalled)
    if called is None:
        return ""
    planned = {
        "fault": step.fault,
        "target": step.target,
        "params": hide_secrets({"params": dict(step.params)})["params"],
    }
    # An empty field differs from the plan; only a missing field proves nothing.
    in_effect = {name: called.value.get(name, value) for name, value in planned.items()}
    return next(
        (
            f"{name}: {planned[name]} was planned, and {in_effect[name]} is recorded"
            for name in planned
            if in_effect[name] != planned[name]
        ),
        "",
    )


def _unplanned_faults(windows: Sequence[FaultWindow], planned: int) -> Iterator[Finding]:
    """Recorded faults that the plan does not have."""
    for window in windows:
        if not 0 <= window.step < planned:
            detail = {"reason": f"{window.fault or 'a fault'} is recorded there"}
            yield Finding(what="not planned", where=f"faults[{window.step}]", detail=detail)


def _idle(step: int, attempt: StepAttempt, history: History) -> str:
    """Why a fault disturbed nothing of the system; empty where it did."""
    if targets := targets_of_probe_alone(history, step):
        return (
            f"on {', '.join(targets)} only the harness's own probe was disturbed: the system sent "
            "nothing and did nothing there; inject it when it does, or for longer"
        )
    in_effect = attempt.get(FaultInEffect)
    if in_effect is None or in_effect.value.get("seen_ns") is None:
        return ""
    if nodes := nodes_without_tasks(in_effect, history):
        return (
            f"no task of the job ran on {', '.join(nodes)}; choose a node that has one, such as "
            "`the node running subtask 0 of TASK`"
        )
    return ""
