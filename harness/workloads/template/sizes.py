"""The largest size of records, so that a load that cannot be sent is rejected before it is made."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.harness.workloads.data_sets.json_line import json_text
from streamquake.harness.workloads.template.fields import FieldTemplate, Nested, Several
from streamquake.harness.workloads.template.generators import Choice, Text, Zipf

SHORT_BYTES = 32
"""Numbers and times are not longer."""
NULL_BYTES = 4


def longest_object(fields: Mapping[str, FieldTemplate]) -> int:
    """The most bytes that an object with these fields can have as JSON."""
    return 2 + sum(_bytes(name) + 2 + longest_value(field) for name, field in fields.items())


def longest_value(field: FieldTemplate) -> int:
    """The most bytes that a value of a field can have as JSON."""
    match field.generator:
        case Text() as text:
            longest = text.length + 2
        case Choice() as choice:
            longest = max(map(_bytes, choice.of))
        case Zipf() as zipf:
            longest = _bytes(f"{zipf.prefix}{zipf.values_}")
        case Several() as several:
            longest = 2 + several.most * (longest_value(several.of) + 1)
        case Nested() as nested:
            longest = longest_object(nested.fields)
        case _:
            longest = SHORT_BYTES
    return max(longest, NULL_BYTES)


def _bytes(value: str | int | bool) -> int:
    return len(json_text(value).encode())
