"""Whether the processes of a fault's nodes ended and started again when the fault says so.

The record has each end and start of a container, with the container engine's own stamp. The engine
of the job reports what ran on a node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.processes import KILLED
from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S, EngineClock, epoch_ms_of
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, first_heal_call
from streamquake.reports.record.fault_events import FaultHealed, FaultInEffect
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.reports.record.run_events import (
    ContainerDied,
    ContainerStarted,
    NodeRevived,
    SandboxDied,
)

TOLERANCE_NS = 100 * 10**6
"""The tolerance of the container engine's stamps on the run's clock."""
RESTARTS = "ends"
"""The observation of how often the container engine restarted a node since the fault ended it."""
REPORTED_S = 2.0
"""How long after an end was seen the container engine may report it; the longest of recorded runs,
some of them on a machine with ten times its cores' work, is 0.8 s."""
REVIVED_S = 10.0
"""How long the harness may take to start a node again, until it records that it did."""
DEPLOYED_S = 0.5
"""How long after the end of a node the engine's stamp of a task must be to prove that the task
began afterwards; such stamps are at most 0.2 s off in recorded runs."""
REPORTED_BY_NODE = ("INITIALIZING", "RUNNING", "FINISHED")
"""The states of a task that its node itself reports. The engine deploys tasks on a node that has
ended, until it notices."""


def started_early(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if a node that the fault should have kept down was started again before the heal
    was called; else empty."""
    began = attempt[FaultInEffect]
    healed = first_heal_call(began, history)
    if healed is None or not _keeps_down(step):
        return ""
    for event in history.of(ContainerStarted, NodeRevived):
        if isinstance(event, NodeRevived) and _started_before(event, began, history):
            continue
        # A fault may itself start the node again, with too small a heap, before its effect is seen.
        after_ns, before_ns = event.at_ns - began.at_ns, healed.at_ns - event.at_ns
        if event.node in (began.nodes or ()) and min(after_ns, before_ns) > TOLERANCE_NS:
            return (
                f"{event.node} was started again after "
                f"{(event.at_ns - began.moment_ns) / 1e9:.1f} s, {before_ns / 1e9:.1f} s before "
                "the heal was called"
            )
    return ""


def _started_before(revived: NodeRevived, began: FaultInEffect, history: History) -> bool:
    """Whether the node was started shortly before the fault took effect, so that its revival may
    only be recorded afterwards."""
    return any(
        event.node == revived.node
        and revived.at_ns - REVIVED_S * 1e9 <= event.at_ns <= began.moment_ns
        for event in history.of(ContainerStarted)
    )


def ran_while_down(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if a task began and ran on a node whose process had ended, before the heal was
    called; else empty."""
    began = attempt[FaultInEffect]
    called = first_heal_call(began, history)
    if called is None or not _ends_and_keeps_down(step):
        return ""
    clock = EngineClock(history)
    for event in history.of(TaskChanged):
        if event.node not in (began.nodes or ()) or event.state not in REPORTED_BY_NODE:
            continue
        started_ns = clock.run_clock_ns(event.start_ms) if event.start_ms else None
        if started_ns is None or event.at_ns > called.at_ns:
            continue
        after_s = (started_ns - began.moment_ns) / 1e9
        if after_s > DEPLOYED_S:
            return (
                f"{event.name} ({event.subtask}) began {after_s:.1f} s after {event.node} had "
                f"ended, and is recorded there as {event.state} before the heal was called"
            )
    return ""


def ended_before_call(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if the process of a node that the fault should have ended had ended before the
    injection was called; else empty."""
    if not _ends_and_keeps_down(step):
        return ""
    began = attempt[FaultInEffect]
    for node in began.nodes or ():
        before = [
            event
            for event in history.of(ContainerDied, ContainerStarted)
            if event.node == node and event.at_ns < began.start_ns - TOLERANCE_NS
        ]
        last = max(before, key=lambda event: event.at_ns, default=None)
        if isinstance(last, ContainerDied):
            before_s = (began.start_ns - last.at_ns) / 1e9
            return f"{node} had ended {before_s:.1f} s before its injection was called"
    return ""


def unreported_ends(step: Step, attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each node whose process should have been ended and started again, where the
    container engine reported no such end, with the exit code of the evidence, or no such start. A
    fault that does not keep its nodes down may start them itself, and end them again."""
    began = attempt[FaultInEffect]
    called, healed = first_heal_call(began, history), attempt.get(FaultHealed)
    reports = history.of(ContainerDied, ContainerStarted)
    # Records of older versions have neither these reports nor the moment that an effect was due.
    if not _ends(step) or not (reports or "due_ns" in began.value):
        return
    since_ns, until_ns = _acted_ns(began, history)
    took_sandboxes = faults[step.fault].ends_sandbox
    sandboxes = {event.node for event in history.of(SandboxDied) if event.at_ns >= since_ns}
    for node in began.nodes or ():
        if took_sandboxes and node not in sandboxes:
            yield f"the container engine did not report that the sandbox of {node} ended"
        own = [event for event in reports if event.node == node]
        ended = _ends_during(began, node, history)
        yield from _other_end(node, began, ended)
        yield from _other_codes(step, ended)
        started = any(isinstance(e, ContainerStarted) and e.at_ns >= until_ns for e in own)
        must_start = _keeps_down(step) and called is not None and healed is not None
        if must_start and not started:
            yield f"the container engine did not report that {node} started after the heal"


def _other_end(node: str, began: FaultInEffect, ended: Sequence[ContainerDied]) -> Iterator[str]:
    """A message where no end of a node was reported, or only one that is later than the observed
    one, or the last one with another exit code."""
    if not ended:
        yield f"the container engine did not report that {node} ended"
        return
    late_s = (ended[0].at_ns - began.moment_ns) / 1e9
    if late_s > REPORTED_S:
        yield f"{node} ended {late_s:.1f} s after it was seen to have ended"
    evidence = (began.evidence or {}).get(node)
    observed = evidence if isinstance(evidence, Mapping) else {}
    restarts = observed.get(RESTARTS)
    if isinstance(restarts, int) and len(ended) <= restarts:
        yield (
            f"{node} is recorded to have ended {restarts + 1} times, and was reported to have "
            f"ended {len(ended)} times"
        )
    code = observed.get("exit_code")
    reported = ended[-1].exit_code
    if None not in (code, reported) and code != reported:
        yield f"{node} ended with {reported}, and {code} was observed"


def _other_codes(step: Step, ended: Sequence[ContainerDied]) -> Iterator[str]:
    """A message for each end with an exit code that the fault does not cause, where it alone
    decides the code: it kills the process before."""
    if codes := faults[step.fault].exit_codes:
        for event in ended:
            if event.exit_code not in (*codes, KILLED, None):
                wanted = " or ".join(map(str, codes))
                yield (
                    f"{event.node} ended with {event.exit_code}, and {step.fault} makes it end "
                    f"with {wanted}"
                )


def ended_by_another(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if each end of a node that the fault should have ended is that of another fault,
    which was in effect before it; else empty. The end of one process proves one fault."""
    began = attempt[FaultInEffect]
    if not _ends(step):
        return ""
    for node in began.nodes or ():
        earlier = {
            ends[0].index: other
            for other in history.of(FaultInEffect)
            if other.index < began.index and other.step != began.step and _is_of(other, node)
            if (ends := _ends_during(other, node, history))
        }
        ended = _ends_during(began, node, history)
        if ended and all(event.index in earlier for event in ended):
            return f"the end of {node} was that of faults[{earlier[ended[-1].index].step}]"
    return ""


def _is_of(began: FaultInEffect, node: str) -> bool:
    """Whether it is a fault that ends the process of this node."""
    fault = faults.get(began.fault or "")
    return fault is not None and fault.ends_process and node in (began.nodes or ())


def _ends_during(began: FaultInEffect, node: str, history: History) -> list[ContainerDied]:
    """The ends of a node from the call of a fault to that of its heal."""
    since_ns, until_ns = _acted_ns(began, history)
    return [
        event
        for event in history.of(ContainerDied)
        if event.node == node and since_ns <= event.at_ns <= until_ns
    ]


def _acted_ns(began: FaultInEffect, history: History) -> tuple[int, int]:
    """From the call of a fault to that of its heal, or to the end of the record."""
    called = first_heal_call(began, history)
    until_ns = history.ended_ns if called is None else called.at_ns
    return began.start_ns - TOLERANCE_NS, until_ns


def not_running_at_call(step: Step, attempt: StepAttempt, history: History) -> Iterator[str]:
    """A message for each node whose process before the injection, by its recorded start, is not the
    one that ran when the injection was called."""
    if not _ends(step):
        return
    began, clock = attempt[FaultInEffect], EngineClock(history)
    for node, observed in (began.evidence or {}).items():
        before = observed.get("before") if isinstance(observed, Mapping) else None
        if not isinstance(before, Mapping) or "started_at" not in before:
            continue
        stamp, recorded = before["started_at"], f"the process that ended on {node} is recorded to"
        if epoch_ms_of(stamp) is None:
            yield f"{recorded} have started at {stamp}, which is no moment"
        for _, started_ns in clock.moments_of({node: before}, "started_at"):
            late_s = (started_ns - began.start_ns) / 1e9
            # What was started again since `before` was measured has another stamp.
            same = observed.get("started_at") == stamp
            early_s = (_last_start_ns(node, began, history) - started_ns) / 1e9 if same else 0
            if late_s > STAMPS_S:
                yield f"{recorded} have started {late_s:.1f} s after the injection was called"
            if early_s > STAMPS_S:
                yield f"{recorded} have started {early_s:.1f} s before the last start of the node"


def _last_start_ns(node: str, began: FaultInEffect, history: History) -> float:
    """When a node was started last before the injection was called, as far as that is recorded."""
    starts = (event.at_ns for event in history.of(ContainerStarted) if event.node == node)
    return max((at_ns for at_ns in starts if at_ns < began.start_ns), default=-math.inf)


def started_outside_heal(step: Step, attempt: StepAttempt, history: History) -> str:
    """A message if the process that runs on a node after the heal started at another time than
    between the call of the heal and the moment at which it was seen to run; else empty."""
    healed, called = attempt.get(FaultHealed), first_heal_call(attempt[FaultInEffect], history)
    if healed is None or called is None or not _starts_with_heal(step):
        return ""
    for node, started_ns in EngineClock(history).moments_of(healed.evidence, "started_at"):
        early_s, late_s = (called.at_ns - started_ns) / 1e9, (started_ns - healed.moment_ns) / 1e9
        if early_s > STAMPS_S:
            return f"{node} is recorded to have started {early_s:.1f} s before the heal was called"
        if late_s > STAMPS_S:
            return f"{node} is recorded to have started {late_s:.1f} s after it was seen to run"
    return ""


def _ends(step: Step) -> bool:
    """Whether the fault ends the processes of its nodes."""
    fault = faults.get(step.fault)
    return fault is not None and fault.ends_process and fault.touches == "process"


def _starts_with_heal(step: Step) -> bool:
    """Whether the heal starts the processes again that the fault ended. A fault of one node after
    the other starts each itself."""
    return _ends(step) and not faults[step.fault].one_by_one


def _ends_and_keeps_down(step: Step) -> bool:
    """Whether the fault ends the processes of its nodes, and keeps them down until its heal."""
    return _keeps_down(step) and _ends(step)


def _keeps_down(step: Step) -> bool:
    """Whether the fault keeps the processes of its nodes down until its heal."""
    fault = faults.get(step.fault)
    return fault is not None and fault.lasts and fault.touches == "process"
