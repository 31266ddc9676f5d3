"""Manual injection on a kept cluster: the same intents, injections and heals as in a run."""

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
from streamquake.topologies.parsing import validated
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean
from streamquake.topologies.yaml_document import Document, parse_value

POLL_EVERY_S = 0.5
"""How often a waiting `inject` checks whether another process has healed the fault."""
SHORTEST_ID = 4
"""The fewest characters of an abbreviated id."""


@dataclass(frozen=True, kw_only=True)
class InteractiveInjection:
    """A manual injection: its intent and its result."""

    intent: Intent
    result: InjectionResult


def inject_now(
    kept: ClusterSession,
    name: str,
    target: str,
    parameters: Sequence[str],
    *,
    rng: random.Random,
    limit_s: float,
) -> InteractiveInjection:
    """Inject and wait for the effect. Undo at once if the effect is not observed, or if the wait is
    interrupted. Raises BadInput."""
    fault = _fault(name, parameters)
    targets = _targets(kept, fault, target, rng)
    names = tuple(chosen.name for chosen in targets)
    _reject_taken(kept, fault, names)  # before the baselines, which may take a while to measure
    baselines = baselines_of(fault, kept.cluster, targets)
    with kept.intents.exclusive():
        _reject_taken(kept, fault, names)
        intent = kept.intents.intend(
            step=0, fault=fault, target=target, names=names, baselines=baselines
        )
    try:
        result = inject_fault(intent, kept.cluster, targets, limit_s=limit_s)
    except BaseException:  # an interruption too: an injection that has begun is undone
        undo(intent, kept.cluster, kept.intents, limit_s=limit_s)
        raise
    if not result.done:
        undo(intent, kept.cluster, kept.intents, limit_s=limit_s)
    return InteractiveInjection(intent=intent, result=result)


def hold(
    kept: ClusterSession, intent: Intent, *, seconds: float, limit_s: float
) -> InjectionResult | None:
    """Wait for `seconds` or until interrupted, then heal. None if another process has healed."""
    clock = kept.cluster.clock
    until_ns = clock.now_ns() + int(seconds * 1e9)
    with suppress(Interrupted):
        while intent in kept.intents.open() and (left_ns := until_ns - clock.now_ns()) > 0:
            clock.sleep(min(POLL_EVERY_S, left_ns / 1e9))
    if intent not in kept.intents.open():
        return None
    return undo(intent, kept.cluster, kept.intents, limit_s=limit_s)


def heal_some(
    kept: ClusterSession, which: Sequence[str], *, limit_s: float
) -> list[tuple[Intent, InjectionResult]]:
    """Undo the open intents of these faults or ids (all if `which` is empty), newest first; the
    failure of one does not stop the others. Raises BadInput for an unknown fault or id."""
    chosen = _chosen(kept.intents.open(), which)
    return [
        (intent, undo(intent, kept.cluster, kept.intents, limit_s=limit_s))
        for intent in reversed(chosen)
    ]


def _chosen(intents: Sequence[Intent], which: Sequence[str]) -> list[Intent]:
    which = [faults.current_name(word) for word in which]
    unknown = [word for word in which if not any(_is_named(i, word) for i in intents)]
    if unknown:
        known = [word for intent in intents for word in (intent.fault, intent.id)]
        text = "no open disturbance is called"
        raise BadInput(
            Problem(file=word, message=f'{text} "{word}"{did_you_mean(word, known)}')
            for word in unknown
        )
    return [i for i in intents if not which or any(_is_named(i, word) for word in which)]


def _is_named(intent: Intent, word: str) -> bool:
    return word == intent.build_fault().name or (
        len(word) >= SHORTEST_ID and intent.id.startswith(word)
    )


def _targets(
    kept: ClusterSession, fault: Fault, target: str, rng: random.Random
) -> tuple[Target, ...]:
    if role_problem := fault_target_problem(fault, target, kept.cluster.topology):
        raise bad_input(target, role_problem)
    if fault.target_kind in ("workload", "job"):
        missing = f"a cluster of `streamquake up` has no {fault.target_kind}"
        where = "the `faults` of an experiment: `streamquake run`"
        raise bad_input(target, f"{missing}; {fault.name} belongs into {where}")
    try:
        return resolve(parse_target(target), kept.cluster, rng)
    except LookupError as error:
        raise bad_input(target, str(error)) from error


def _reject_taken(kept: ClusterSession, fault: Fault, names: Sequence[str]) -> None:
    if (other := _same(kept, fault, names)) is not None:
        message = f"{', '.join(other.names)} is already under {other.fault}"
        by = f" (by {other.by} since {other.at})" if other.by else ""
        raise bad_input(", ".join(names), f"{message}{by}; `streamquake heal {other.id}` first")


def _same(kept: ClusterSession, fault: Fault, names: Sequence[str]) -> Intent | None:
    """An open fault that affects the same resource of one of the targets."""
    for intent in kept.intents.open():
        if intent.build_fault().touches == fault.touches and set(names) & set(intent.names):
            return intent
    return None


def _fault(name: str, parameters: Sequence[str]) -> Fault:
    if name not in faults:
        raise bad_input(name, f'no fault is called "{name}"{did_you_mean(name, faults)}')
    values: dict[str, Any] = {}
    problems = []
    for written in parameters:
        key, equals, text = written.partition("=")
        try:
            if not equals:
                raise ValueError("expected NAME=VALUE, such as latency_ms=200")
            values[key] = parse_value(text)
        except ValueError as error:
            problems.append(Problem(file=written, message=str(error)))
    kind = faults[faults.current_name(name)]
    fault, wrong = validated(kind, values, Document(file=name, data=values), ())
    if fault is None or problems or wrong:
        raise BadInput([*problems, *wrong])
    return fault
