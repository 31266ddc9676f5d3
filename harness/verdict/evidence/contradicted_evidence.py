"""Whether the recorded observations of a fault agree with what the record concludes from them: that
it was in effect, or healed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.faults.fault import Fault
from streamquake.faults.requirement import (
    Requirements,
    at_least,
    is_number,
    more_than,
    one_of,
    some,
    unmet,
)
from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.evidence.engine_clock import epoch_ms_of
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt
from streamquake.reports.record.fault_events import (
    FaultHealed,
    FaultInEffect,
    FaultStillInEffect,
    ObservedFaultEvent,
)
from streamquake.reports.record.history import History
from streamquake.topologies.model import Topology
from streamquake.topologies.registry import UnknownName


def contradicted_effect(
    step: Step, began: FaultInEffect, history: History, topology: Topology
) -> Iterator[str]:
    """A message for each observation of a fault in effect, from its first to its last verification,
    that shows that it was not, or that is missing."""
    if (fault := fault_of(step)) is None:
        return
    verifications = (e for e in history.of(FaultStillInEffect) if e.step == began.step)
    last: dict[str, Mapping[str, Any]] = {}
    for verification in (began, *(e for e in verifications if e.index > began.index)):
        for target, observed, before in _observations(verification, began):
            for message in (
                *_unrecorded(observed, _needed(fault, before)),
                *_other_parts(observed, fault.observed_parts(topology, target)),
                *fault.contradicted_effect(observed, before),
                *_other_than_before(fault, observed, last.get(target, {})),
                *_other_baseline(target, observed, began),
            ):
                yield f"it is recorded as in effect on {target}, and {message}"
            last[target] = observed


def contradicted_heal(step: Step, attempt: StepAttempt, topology: Topology) -> Iterator[str]:
    """A message for each observation of a healed fault that shows that it was not, or that is
    missing."""
    if (fault := fault_of(step)) is None:
        return
    began = attempt.get(FaultInEffect)
    for target, observed, before in _observations(attempt.get(FaultHealed), began):
        required = fault.heal_requires(before)
        for message in (
            *_unrecorded(observed, required),
            *_other_parts(observed, fault.observed_parts(topology, target)),
            *unmet(observed, required),
            *_without_process(observed),
            *_other_baseline(target, observed, began),
        ):
            yield f"it is recorded as healed on {target}, and {message}"


def _needed(fault: Fault, before: Mapping[str, Any]) -> Requirements:
    """What must be observed of an effect, with the values before the injection where the fault
    measures them."""
    known = {"before": some()} if fault.has_baseline() else {}
    return {**known, **fault.effect_requires(before)}


def _unrecorded(observed: Mapping[str, Any], required: Requirements) -> Iterator[str]:
    """A message where not all was observed that is needed to prove it."""
    if missing := [name for name in required if name not in observed]:
        yield f"its {', '.join(missing)} is not recorded"


def _without_process(observed: Mapping[str, Any]) -> Iterator[str]:
    """A message where a node is recorded as running without a process, or without its start. A node
    that was removed has neither."""
    if observed.get("status") != ContainerStatus.RUNNING:
        return
    if "pid" in observed and not more_than(0).is_met(pid := observed["pid"]):
        yield f"it runs as the process {pid}"
    started_at = observed.get("started_at")
    if isinstance(started_at, str) and epoch_ms_of(started_at) is None:
        yield f"it runs since {started_at!r}, which is no time stamp"


def _other_parts(observed: Mapping[str, Any], parts: Mapping[str, Set[str]]) -> Iterator[str]:
    """A message for each observation of other parts of the target than it has."""
    for name, expected in parts.items():
        found = observed.get(name)
        if isinstance(found, Mapping) and set(found) != expected:
            wanted = ", ".join(sorted(expected))
            yield f"{name}: expected that of {wanted}, got that of {', '.join(found) or 'none'}"


def _other_than_before(
    fault: Fault, observed: Mapping[str, Any], last: Mapping[str, Any]
) -> Iterator[str]:
    """A message for each observation that cannot follow that of the verification before."""
    required = {
        **{name: at_least(last[name]) for name in fault.grows if is_number(last.get(name))},
        **{name: one_of(last[name]) for name in fault.keeps if name in last},
    }
    for message in unmet(observed, required):
        yield f"{message}, unlike at the verification before"


def _other_baseline(
    target: str, observed: Mapping[str, Any], began: FaultInEffect | None
) -> Iterator[str]:
    """A message if the values before the injection are not those that its effect was compared
    with: they are measured once."""
    first = (began.evidence or {}).get(target) if began else None
    if isinstance(first, Mapping) and "before" in first:
        expected, found = first["before"], observed.get("before")
        if found != expected:
            yield f"before: expected {expected}, as of its effect, got {found}"


def _observations(
    event: ObservedFaultEvent | None, first: ObservedFaultEvent | None = None
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Each target of the event, what was observed on it, and what was before the injection: a
    verification is recorded without it, and `first` has it."""
    for target, observed in ((event.evidence or {}) if event else {}).items():
        if isinstance(observed, Mapping):
            earlier = (first.evidence or {}).get(target) if first else None
            known = {**observed}
            if isinstance(earlier, Mapping) and "before" in earlier:
                known.setdefault("before", earlier["before"])
            before = known.get("before")
            yield target, known, before if isinstance(before, Mapping) else {}


def fault_of(step: Step) -> Fault | None:
    """The fault with its parameters; None for a step that this version does not know."""
    with suppress(UnknownName, ValidationError):
        return step.build_fault()
    return None
