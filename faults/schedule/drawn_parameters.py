"""Drawing the parameters of a fault over their range."""

from __future__ import annotations

import math
import random
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from streamquake.faults.fault import Fault

FACTOR = 8.0
"""A number is drawn up to so many times smaller or larger than that of the fault's example: the
bounds of a parameter protect the machine, and most of a range of a day would outlast any run."""
TRIES = 10


def draw_parameters(fault: type[Fault], rng: random.Random) -> dict[str, Any]:
    """Valid parameters of a fault: choices with equal probability, numbers on a logarithmic scale.
    Parameters that the example does not have keep their default unless they are a choice."""
    for _ in range(TRIES):
        drawn = {
            name: _value(field, fault.example.get(name, field.default), rng)
            for name, field in fault.model_fields.items()
            if name in fault.example or _choices(field)
        }
        try:
            fault(**drawn)
        except ValidationError:  # a combination that the fault rejects
            continue
        return drawn
    return dict(fault.example)


def _choices(field: FieldInfo) -> tuple[Any, ...]:
    if field.annotation is bool:
        return (True, False)
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def _value(field: FieldInfo, usual: Any, rng: random.Random) -> Any:
    if choices := _choices(field):
        return rng.choice(choices)
    if isinstance(usual, bool) or not isinstance(usual, int | float) or usual <= 0:
        return usual
    lowest, highest = _bounds(field)
    low, high = max(usual / FACTOR, lowest), min(usual * FACTOR, highest)
    drawn = math.exp(rng.uniform(math.log(low), math.log(high)))
    if isinstance(usual, int):
        return min(max(round(drawn), math.ceil(low)), math.floor(high))
    return min(max(float(f"{drawn:.2g}"), low), high)


def _bounds(field: FieldInfo) -> tuple[float, float]:
    """The smallest positive and the largest number that the field allows."""
    lowest, highest = 0.0, math.inf
    for bound in field.metadata:
        match bound:
            case Ge(ge=limit) | Gt(gt=limit):
                lowest = max(lowest, float(str(limit)))
            case Le(le=limit) | Lt(lt=limit):
                highest = min(highest, float(str(limit)))
    return lowest, highest
