"""What the formats with a schema have in common: values are exactly those of the schema, or
rejected with their place."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from streamquake.harness.workloads.data_sets.column_types import fits
from streamquake.harness.workloads.data_sets.json_line import shown
from streamquake.topologies.errors import ErrorKind, StreamquakeError


class NotExact(StreamquakeError, ValueError):
    """A value that its type does not represent exactly, at a place such as `items[2].price`."""

    kind = ErrorKind.BAD_INPUT

    def __init__(self, value: Any, kind: str, place: str) -> None:
        super().__init__(
            f"{place or 'the record'} is {shown(value)}, which is not exactly representable as "
            f"{kind[:60]} of the schema"
        )


def within(place: str, name: str) -> str:
    """The place of a field of what is at `place`."""
    return f"{place}.{name}" if place else name


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, Decimal) or is_whole(value)


def floating(value: Any, kind: str, place: str, *, single: bool) -> float:
    """The double of which the value is a numeral; a `single` number must be that double too, so
    that its consumers read what the records sent have. Raises NotExact."""
    if not is_number(value) or not fits("DOUBLE", value):
        raise NotExact(value, kind, place)
    double = float(value)
    with np.errstate(over="ignore"):
        if single and float(np.float32(double)) != double:
            raise NotExact(value, kind, place)
    return double
