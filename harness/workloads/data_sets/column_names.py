"""The names that the fields of a data set may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamquake.topologies.model import LONGEST_NAME

RESERVED = ("index", "status")
"""Columns that the records sent have beside their own."""
_NAME = re.compile(r"[^`\x00-\x1f\x7f]+")


def reject_names(names: Iterable[str]) -> None:
    """Raise ValueError for names that the view of the records cannot have."""
    known: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise ValueError(
                f"expected fields with names of up to {LONGEST_NAME} characters, without backticks "
                f"and control characters, got {name[:80]!r}"
            )
        if (folded := _folded(name)) in RESERVED:
            raise ValueError(f'the field "{name}" has a reserved name; rename it')
        if (other := known.setdefault(folded, name)) != name:
            raise ValueError(f'the fields "{other}" and "{name}" differ in case only; rename one')


def _folded(name: str) -> str:
    """The same text for names that Spark, which uses Java's equalsIgnoreCase, takes as equal."""
    return "".join(_lower(_upper(character)) for character in name)


def _upper(character: str) -> str:
    return upper if len(upper := character.upper()) == 1 else character


def _lower(character: str) -> str:
    return character.lower()[:1]
