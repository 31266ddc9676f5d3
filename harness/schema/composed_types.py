"""Types that are composed at run time, from the members of registries and the shipped files.

A type checker cannot know them, so they are `Any` to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union

TUPLE: Any = tuple
MAPPING: Any = Mapping


def one_of(names: Iterable[str]) -> Any:
    """A text that is one of these names."""
    return Literal[tuple(names)]


def either(*types: Any) -> Any:
    """A value of any of these types; None is a value too."""
    return Union[types]  # noqa: UP007 - the types are known only when this runs


def list_of(entry: Any) -> Any:
    """A list with entries of this type."""
    return TUPLE[entry, ...]


def pair_of(entry: Any) -> Any:
    """A list with two entries of this type."""
    return TUPLE[entry, entry]


def mapping_of(keys: Any, values: Any) -> Any:
    """A mapping from keys to values of these types."""
    return MAPPING[keys, values]
