"""A requirement on a recorded observation: what it must be where a fault is in effect, or healed.

The judge applies it to the evidence of a record. Evidence is judged when it is observed; a record
in which the two disagree proves neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What an observation must be."""

    expected: str
    """In words, as in "expected `expected`, got …"."""
    is_met: Callable[[Any], bool]


Requirements = Mapping[str, Requirement]
"""Name of an observation -> what it must be."""


def one_of(*values: Any) -> Requirement:
    """One of these values, of the same type: 1 is not True."""
    names = dict.fromkeys(str(value) for value in values)
    return Requirement(
        expected=" or ".join(names),
        is_met=lambda found: any(found == v and type(found) is type(v) for v in values),
    )


def other_than(*values: Any) -> Requirement:
    """None of these values."""
    return Requirement(
        expected=f"another than {' or '.join(str(value) for value in values)}",
        is_met=lambda found: found not in values,
    )


def other_text_than(*values: Any) -> Requirement:
    """A text that is none of these values; it may be empty."""
    return Requirement(
        expected=f"a text other than {' or '.join(str(value) for value in values)}",
        is_met=lambda found: isinstance(found, str) and found not in values,
    )


def more_than(least: float) -> Requirement:
    """A number above this one."""
    return _number(f"more than {least:g}", lambda found: found > least)


def less_than(most: float) -> Requirement:
    """A number below this one."""
    return _number(f"less than {most:g}", lambda found: found < most)


def at_least(least: float) -> Requirement:
    """This number, or a larger one."""
    return _number(f"at least {least:g}", lambda found: found >= least)


def at_most(most: float) -> Requirement:
    """This number, or a smaller one."""
    return _number(f"at most {most:g}", lambda found: found <= most)


def text_with(*parts: str, words: str = "") -> Requirement:
    """A text in which each of these regular expressions is found; `words` say so where they are
    not plain."""
    return Requirement(
        expected=words or f"a text with {' and '.join(parts)}",
        is_met=lambda found: (
            isinstance(found, str) and all(re.search(part, found) for part in parts)
        ),
    )


def as_many_as(others: Sized) -> Requirement:
    """A table or a list with as many entries as another."""
    return Requirement(
        expected=f"{len(others)} of them",
        is_met=lambda found: isinstance(found, Mapping | list) and len(found) == len(others),
    )


def same_names_as(others: Any) -> Requirement:
    """A table with the names of another; any where there is no other."""
    names = set(others) if isinstance(others, Mapping) else None
    return Requirement(
        expected="" if names is None else f"the same {len(names)} names as before",
        is_met=lambda found: names is None or (isinstance(found, Mapping) and set(found) == names),
    )


def any_of(wanted: Requirement) -> Requirement:
    """A table or a list, one value of which at least meets another requirement."""

    def is_met(found: Any) -> bool:
        values = found.values() if isinstance(found, Mapping) else found
        return isinstance(found, Mapping | list) and any(map(wanted.is_met, values))

    return Requirement(expected=f"{wanted.expected} for one at least", is_met=is_met)


def all_of(*wanted: Requirement) -> Requirement:
    """What meets each of these requirements."""
    return Requirement(
        expected=", ".join(one.expected for one in wanted if one.expected),
        is_met=lambda found: all(one.is_met(found) for one in wanted),
    )


def some() -> Requirement:
    """A list, a table or a text that is not empty."""
    return Requirement(
        expected="at least one",
        is_met=lambda found: isinstance(found, list | tuple | dict | str) and len(found) > 0,
    )


def each(wanted: Requirement) -> Requirement:
    """A table or a list that is not empty, each value of which meets another requirement."""

    def is_met(found: Any) -> bool:
        values = found.values() if isinstance(found, Mapping) else found
        return isinstance(found, Mapping | list) and bool(found) and all(map(wanted.is_met, values))

    return Requirement(expected=f"{wanted.expected} for each", is_met=is_met)


def has(**wanted: Requirement) -> Requirement:
    """A table whose values of these names meet other requirements."""
    return Requirement(
        expected=", ".join(f"{name} {one.expected}" for name, one in wanted.items()),
        is_met=lambda found: (
            isinstance(found, Mapping)
            and all(one.is_met(found.get(name)) for name, one in wanted.items())
        ),
    )


def without(*values: Any) -> Requirement:
    """A list that has none of these."""
    return Requirement(
        expected=f"none of {', '.join(map(str, values))}",
        is_met=lambda found: isinstance(found, list | tuple) and not set(found) & set(values),
    )


def unmet(observations: Mapping[str, Any], required: Requirements) -> Iterator[str]:
    """A message for each observation that is not as required. One that is missing proves
    nothing."""
    for name, requirement in required.items():
        if name in observations and not requirement.is_met(found := observations[name]):
            # Of another type, and written alike: 137 and "137".
            kind = f"{type(found).__name__} " if str(found) == requirement.expected else ""
            yield f"{name}: expected {requirement.expected}, got {kind}{found}"


def is_number(value: Any) -> bool:
    """Whether it is a number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(expected: str, is_met: Callable[[float], bool]) -> Requirement:
    """A number with this property; a truth value is none."""
    return Requirement(
        expected=expected,
        is_met=lambda found: is_number(found) and is_met(found),
    )
