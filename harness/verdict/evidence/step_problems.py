"""Why the record does not prove that the fault of a step was injected as planned, in effect until
its heal, and healed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import left_out_of_target, outside_target, parse_target
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.evidence.affected_subtasks import acted_elsewhere, ran_elsewhere
from streamquake.harness.verdict.evidence.contradicted_evidence import (
    contradicted_effect,
    contradicted_heal,
)
from streamquake.harness.verdict.evidence.copied_evidence import copied_evidence
from streamquake.harness.verdict.evidence.disturbed_traffic import targets_of_probe_alone
from streamquake.harness.verdict.evidence.engine_reports import unreported_by_engine
from streamquake.harness.verdict.evidence.event_order import disordered_events
from streamquake.harness.verdict.evidence.heal_evidence import (
    CLOCK_S,
    not_healed,
    unhealed_earlier_attempt,
)
from streamquake.harness.verdict.evidence.idle_nodes import nodes_without_tasks
from streamquake.harness.verdict.evidence.last_verification import not_verified_until_heal
from streamquake.harness.verdict.evidence.missed_windows import outside_window
from streamquake.harness.verdict.evidence.node_ends import (
    ended_before_call,
    ended_by_another,
    not_running_at_call,
    ran_while_down,
    started_early,
    started_outside_heal,
    unreported_ends,
)
from streamquake.harness.verdict.evidence.planned_duration import early_end, early_heal
from streamquake.harness.verdict.evidence.rule_hits import (
    hits_outside_injection,
    rules_of_ended_jvms,
)
from streamquake.harness.verdict.evidence.steered_load import contradicted_load
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_problem
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultInEffect,
    FaultMissedWindow,
    FaultNotInEffect,
    FaultNotVerified,
    FaultSkipped,
    FaultStillInEffect,
    HealCalled,
    ObservedFaultEvent,
)
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.topologies.model import Topology

NOT_IN_WINDOW = "not in its window"
ENDED_EARLY = "ended early"
HEALED_EARLY = "healed early"
NOT_VERIFIED_AGAIN = "not verified again"
NOT_HEALED = "not healed"


def step_problems(
    attempt: StepAttempt, number: int, experiment: Experiment, history: History, idle: str
) -> list[tuple[str, str]]:
    """What is wrong with the fault of a step, each with its reason; `idle` is why it disturbed
    nothing, where that counts."""
    step = experiment.faults[number]
    if FaultInEffect not in attempt:
        skipped = attempt.get(FaultSkipped) or attempt.get(FaultNotInEffect)
        return [("not in effect", skipped.reason if skipped else "it was never attempted")]
    if attempt[FaultInEffect].value.get("seen_ns") is None:
        return [("without evidence", "the moment of its effect is not recorded")]
    problems = [
        *_contradictions(step, attempt, experiment.topology),
        *_effect_problems(step, attempt, history, experiment.topology),
    ]
    if (late := attempt.get(FaultMissedWindow)) is not None:
        problems.append((NOT_IN_WINDOW, late.reason))
    if elsewhere := ran_elsewhere(step.target, attempt[FaultInEffect], history):
        problems.append(("another target", f"{step.target} was planned, and {elsewhere}"))
    if idle:
        problems.append(("without effect on the system", idle))
    problems += _trigger_problems(step, attempt, history, experiment.faults[:number])
    problems += _duration_problems(step, attempt, history)
    unhealed = not_healed(attempt, history)
    if unhealed := unhealed or unhealed_earlier_attempt(fault_windows(history), number):
        problems.append((NOT_HEALED, unhealed))
    contradictions = (
        *_contradicted_events(attempt),
        *contradicted_heal(step, attempt, experiment.topology),
        *unreported_ends(step, attempt, history),
        ended_by_another(step, attempt, history),
        *copied_evidence(attempt, history),
        *not_running_at_call(step, attempt, history),
        started_outside_heal(step, attempt, history),
        ran_while_down(step, attempt, history),
        *hits_outside_injection(attempt, history),
        *rules_of_ended_jvms(attempt, history),
        *acted_elsewhere(attempt[FaultInEffect], history),
        *contradicted_load(step, attempt, history),
        *unreported_by_engine(attempt, history),
        *disordered_events(number, history),
    )
    problems += [("contradictory evidence", why) for why in contradictions if why]
    return problems


def _contradicted_events(attempt: StepAttempt) -> Iterator[str]:
    """Events of one injection that name another fault, another target or other nodes, and
    observations that are later than their own events."""
    began = attempt[FaultInEffect]
    for event in attempt.events():
        if not isinstance(event, ObservedFaultEvent | HealCalled):
            continue
        for name in ("fault", "target", "nodes"):
            found, expected = event.value.get(name), began.value.get(name)
            if None not in (found, expected) and found != expected:
                yield f"{name} of `{event.action}` is {found}, and of its effect {expected}"
        if isinstance(event, ObservedFaultEvent) and event.moment_ns > event.at_ns + CLOCK_S * 1e9:
            late_s = (event.moment_ns - event.at_ns) / 1e9
            yield f"`{event.action}` was observed {late_s:.1f} s after it was recorded"


def _effect_problems(
    step: Step, attempt: StepAttempt, history: History, topology: Topology
) -> Iterator[tuple[str, str]]:
    """Evidence against a recorded effect."""
    for why in contradicted_effect(step, attempt[FaultInEffect], history, topology):
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
        yield NOT_IN_WINDOW, outside


def _duration_problems(
    step: Step, attempt: StepAttempt, history: History
) -> Iterator[tuple[str, str]]:
    """Why it did not last as planned, or was not verified until its heal."""
    if ended := early_end(step, attempt):
        yield ENDED_EARLY, ended
    elif healed := early_heal(step, attempt, history):
        yield HEALED_EARLY, healed
    elif started := started_early(step, attempt, history):
        yield ENDED_EARLY, started
    if (unverified := attempt.get(FaultNotVerified)) is not None:
        yield NOT_VERIFIED_AGAIN, unverified.reason
    elif unreported := _unrecorded_verification(attempt):
        yield NOT_VERIFIED_AGAIN, unreported
    elif unverified_again := not_verified_until_heal(step, attempt, history):
        yield NOT_VERIFIED_AGAIN, unverified_again


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
        yield NOT_VERIFIED_AGAIN, f"its last verification saw no effect on {', '.join(unseen)}"
    if not targets:
        yield "without evidence", "it was injected on no target"


def _unseen_targets(targets: Sequence[str], verification: ObservedFaultEvent | None) -> list[str]:
    """The targets of which a recorded verification has no evidence."""
    if verification is None:
        return []
    return [target for target in targets if target not in verification.observed_targets]


def _other_injection(step: Step, attempt: StepAttempt) -> str:
    """A message if the call has another fault, another target or other parameters than planned;
    else empty. Histories have no secrets."""
    called = attempt.get(FaultCalled)
    if called is None:
        return ""
    if step.params and "params" not in called.value:
        return "its parameters are not recorded"
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


def idle_reason(step: int, attempt: StepAttempt, history: History) -> str:
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
