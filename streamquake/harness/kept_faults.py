"""Disturbing a kept cluster by hand: the same intents, strikes and undoing as in a run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamquake.faults.fault import Fault, faults
from streamquake.faults.intents import Intent
from streamquake.faults.strike import Struck, strike, undo
from streamquake.faults.target import parse_target, resolve
from streamquake.harness.kept import Kept
from streamquake.harness.rules import target_trouble
from streamquake.topologies.parsing import validated
from streamquake.topologies.problems import BadInput, Problem, did_you_mean
from streamquake.topologies.yaml_document import Document, parse_value


@dataclass(frozen=True, kw_only=True)
class HandStrike:
    """What came of an injection by hand, and on which targets."""

    names: tuple[str, ...]
    struck: Struck


def strike_now(
    kept: Kept, name: str, target: str, parameters: Sequence[str], *, rng: random.Random,
    limit_s: float,
) -> HandStrike:  # fmt: skip
    """Inject and wait for the effect; undone at once when it is not seen. Raises BadInput."""
    fault = _fault(name, parameters)
    if trouble := target_trouble(fault, target, kept.cluster.topology):
        raise _bad(target, trouble)
    targets = resolve(parse_target(target), kept.cluster, rng)
    names = tuple(each.name for each in targets)
    if (other := _same(kept, fault, names)) is not None:
        said = f"{', '.join(other.names)} is already under {other.fault}; `streamquake heal` first"
        raise _bad(target, said)
    intent = kept.intents.intend(step=0, fault=fault, target=target, names=names)
    struck = strike(fault, kept.cluster, targets, limit_s=limit_s)
    if not struck.done:
        undo(intent, kept.cluster, kept.intents, limit_s=limit_s)
    return HandStrike(names=names, struck=struck)


def heal_all(kept: Kept, *, limit_s: float) -> list[tuple[Intent, Struck]]:
    """Undo every open intent, newest first; one that fails stops no other."""
    return [
        (intent, undo(intent, kept.cluster, kept.intents, limit_s=limit_s))
        for intent in reversed(kept.intents.open())
    ]


def _same(kept: Kept, fault: Fault, names: Sequence[str]) -> Intent | None:
    """An open disturbance of the same kind of thing on one of the targets."""
    for intent in kept.intents.open():
        if intent.made().touches == fault.touches and set(names) & set(intent.names):
            return intent
    return None


def _fault(name: str, parameters: Sequence[str]) -> Fault:
    if name not in faults:
        raise _bad(name, f'no fault is called "{name}"{did_you_mean(name, faults)}')
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
    fault, wrong = validated(faults[name], values, Document(file=name, data=values), ())
    if fault is None or problems or wrong:
        raise BadInput([*problems, *wrong])
    return fault


def _bad(place: str, message: str) -> BadInput:
    return BadInput([Problem(file=place, message=message)])
