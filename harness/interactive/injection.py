"""Manual injection on a kept cluster, with the same intents, injections and heals as in a run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from streamquake.faults.fault import Fault, Target, faults
from streamquake.faults.injection.injection import InjectionResult, baselines_of, inject_fault, undo
from streamquake.faults.injection.intents import Intent
from streamquake.faults.schedule.target import parse_target, resolve
from streamquake.harness.experiment.validation import fault_target_problem
from streamquake.harness.interactive.session import ClusterSession
from streamquake.harness.interrupts import Interrupted
from streamquake.topologies.parsing import validate_data
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean
from streamquake.topologies.yaml_document import Document, parse_value

POLL_EVERY_S = 0.5
"""How often a waiting `inject` checks whether another process has healed the fault."""
SHORTEST_ID = 4
"""The shortest prefix of an id that identifies an injection."""


@dataclass(frozen=True, kw_only=True)
class InteractiveInjection:
    """A manual injection: its intent and its result."""

    intent: Intent
    result: InjectionResult


def inject_now(
    session: ClusterSession,
    name: str,
    target: str,
    parameters: Sequence[str],
    *,
    rng: random.Random,
    limit_s: float,
) -> InteractiveInjection:
    """Inject a fault and wait for its effect. Heal it at once if the effect is not observed or the
    wait is interrupted. Raises BadInput."""
    fault = _fault(name, parameters)
    targets = _targets(session, fault, target, rng)
    names = tuple(selected.name for selected in targets)
    _reject_disturbed(session, fault, names)  # first, because baselines take time to measure
    baselines = baselines_of(fault, session.cluster, targets)
    with session.intents.exclusive():
        _reject_disturbed(session, fault, names)
        intent = session.intents.write_intent(
            step=0, fault=fault, target=target, names=names, baselines=baselines
        )
    try:
        result = inject_fault(intent, session.cluster, targets, limit_s=limit_s)
    except BaseException:  # also an interruption: an injection that has begun is undone
        undo(intent, session.cluster, session.intents, limit_s=limit_s)
        raise
    if not result.done:
        undo(intent, session.cluster, session.intents, limit_s=limit_s)
    return InteractiveInjection(intent=intent, result=result)


def hold(
    session: ClusterSession, intent: Intent, *, seconds: float, limit_s: float
) -> InjectionResult | None:
    """Wait for `seconds` or until interrupted, then heal. None if another process has healed."""
    clock = session.cluster.clock
    until_ns = clock.now_ns() + int(seconds * 1e9)
    with suppress(Interrupted):
        while (
            intent in session.intents.open_intents() and (left_ns := until_ns - clock.now_ns()) > 0
        ):
            clock.sleep(min(POLL_EVERY_S, left_ns / 1e9))
    if intent not in session.intents.open_intents():
        return None
    return undo(intent, session.cluster, session.intents, limit_s=limit_s)


def heal_faults(
    session: ClusterSession, names: Sequence[str], *, limit_s: float
) -> list[tuple[Intent, InjectionResult]]:
    """Heal the open faults with these names or ids (all if `names` is empty), newest first. A
    failed heal does not stop the others. Raises BadInput for an unknown name or id."""
    selected = _open_intents(session.intents.open_intents(), names)
    return [
        (intent, undo(intent, session.cluster, session.intents, limit_s=limit_s))
        for intent in reversed(selected)
    ]


def _open_intents(intents: Sequence[Intent], names: Sequence[str]) -> list[Intent]:
    names = [faults.current_name(name) for name in names]
    unknown = [name for name in names if not any(_is_named(i, name) for i in intents)]
    if unknown:
        known = [name for intent in intents for name in (intent.fault, intent.id)]
        text = "no open disturbance is called"
        raise BadInput(
            Problem(file=name, message=f'{text} "{name}"{did_you_mean(name, known)}')
            for name in unknown
        )
    return [i for i in intents if not names or any(_is_named(i, name) for name in names)]


def _is_named(intent: Intent, name: str) -> bool:
    return name == intent.build_fault().name or (
        len(name) >= SHORTEST_ID and intent.id.startswith(name)
    )


def _targets(
    session: ClusterSession, fault: Fault, target: str, rng: random.Random
) -> tuple[Target, ...]:
    if role_problem := fault_target_problem(fault, target, session.cluster.topology):
        raise bad_input(target, role_problem)
    if fault.target_kind in ("workload", "job"):
        missing = f"a cluster of `streamquake up` has no {fault.target_kind}"
        where = "the `faults` of an experiment: `streamquake run`"
        raise bad_input(target, f"{missing}; {fault.name} belongs in {where}")
    try:
        return resolve(parse_target(target), session.cluster, rng)
    except LookupError as error:
        raise bad_input(target, str(error)) from error


def _reject_disturbed(session: ClusterSession, fault: Fault, names: Sequence[str]) -> None:
    if (other := _conflicting(session, fault, names)) is not None:
        message = f"{', '.join(other.names)} is already under {other.fault}"
        by = f" (by {other.by} since {other.at})" if other.by else ""
        raise bad_input(", ".join(names), f"{message}{by}; `streamquake heal {other.id}` first")


def _conflicting(session: ClusterSession, fault: Fault, names: Sequence[str]) -> Intent | None:
    """An open fault that disturbs one of the targets in the same way; None if there is none."""
    for intent in session.intents.open_intents():
        if intent.build_fault().touches == fault.touches and set(names) & set(intent.names):
            return intent
    return None


def _fault(name: str, parameters: Sequence[str]) -> Fault:
    if name not in faults:
        raise bad_input(name, f'no fault is called "{name}"{did_you_mean(name, faults)}')
    values: dict[str, Any] = {}
    problems = []
    for parameter in parameters:
        key, equals, text = parameter.partition("=")
        try:
            if not equals:
                raise ValueError("expected NAME=VALUE, such as latency_ms=200")
            values[key] = parse_value(text)
        except ValueError as error:
            problems.append(Problem(file=parameter, message=str(error)))
    kind = faults[faults.current_name(name)]
    fault, invalid = validate_data(kind, values, Document(file=name, data=values), ())
    if fault is None or problems or invalid:
        raise BadInput([*problems, *invalid])
    return fault
