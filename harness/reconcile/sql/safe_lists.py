"""What SQL of documents and options may be made of, as `safe_sql.txt` lists it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

LISTS = Path(__file__).with_name("safe_sql.txt")
ALLOWED = "allowed"
_FUNCTIONS = "functions: "
_VALUES, _QUERIES = "parts of an expression", "parts of a query beside them"
_GENERATORS = "functions that may stand where a relation does, as they make rows of values"
_NAMES = "names that are functions where no column is called so"


def parts_of_expressions() -> frozenset[str]:
    """The classes of Spark's tree that an expression over one record is made of."""
    return frozenset(_lists()[_VALUES])


def parts_of_queries() -> frozenset[str]:
    """Those of a query, which reads, groups and joins rows beside."""
    return parts_of_expressions() | frozenset(_lists()[_QUERIES])


def generators() -> frozenset[str]:
    """Functions that may stand where a relation does: they make rows of values."""
    return frozenset(_lists()[_GENERATORS])


def names_of_functions() -> frozenset[str]:
    """Names that Spark takes for functions where no column is called so."""
    return frozenset(_lists()[_NAMES])


@cache
def functions() -> Mapping[str, str]:
    """Every function of Spark -> `ALLOWED`, or why it is not."""
    return {
        name: title.removeprefix(_FUNCTIONS)
        for title, names in _lists().items()
        if title.startswith(_FUNCTIONS)
        for name in names
    }


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    """Title -> the words below it."""
    found: dict[str, tuple[str, ...]] = {}
    title = ""
    for line in LISTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
        elif not line.startswith("#"):
            found[title] = (*found.get(title, ()), *line.split())
    return found
