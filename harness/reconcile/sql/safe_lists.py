"""The allowed parts and functions of SQL in documents and options, from `safe_sql.txt`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

LISTS = Path(__file__).with_name("safe_sql.txt")
ALLOWED = "allowed"
_FUNCTIONS = "functions: "
_VALUES, _QUERIES = "parts of an expression", "parts of a query beside them"
_GENERATORS = "functions that are allowed in place of a relation: they generate rows from values"
_NAMES = "names that Spark reads as functions where no column has the name"


def parts_of_expressions() -> frozenset[str]:
    """The classes of Spark's tree that are allowed in an expression over one record."""
    return frozenset(_lists()[_VALUES])


def parts_of_queries() -> frozenset[str]:
    """The classes of Spark's tree that are allowed in a query."""
    return parts_of_expressions() | frozenset(_lists()[_QUERIES])


def generators() -> frozenset[str]:
    """Functions that are allowed in the place of a relation: they generate rows from values."""
    return frozenset(_lists()[_GENERATORS])


def names_of_functions() -> frozenset[str]:
    """Names that Spark reads as functions where no column has the name."""
    return frozenset(_lists()[_NAMES])


@cache
def functions() -> Mapping[str, str]:
    """Each function of Spark -> `ALLOWED`, or the reason why it is rejected."""
    return {
        name: title.removeprefix(_FUNCTIONS)
        for title, names in _lists().items()
        if title.startswith(_FUNCTIONS)
        for name in names
    }


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    """Title -> the words below it."""
    words_by_title: dict[str, tuple[str, ...]] = {}
    title = ""
    for line in LISTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
        elif not line.startswith("#"):
            words_by_title[title] = (*words_by_title.get(title, ()), *line.split())
    return words_by_title
