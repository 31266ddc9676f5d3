"""A part that an experiment names with its parameters: `{NAME: {PARAMETER: VALUE}}`.

The experiment holds the part itself. A record holds its name and the parameters that were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import SerializationInfo

from streamquake.topologies.registry import Registry


def part_of(members: Registry[Any], written: Any) -> Any:
    """The part that a mapping with one key names; a value that is no mapping is returned as it is.

    Raises ValueError if there is not exactly one key, UnknownName, or pydantic's ValidationError.
    """
    if not isinstance(written, Mapping):
        return written
    if len(written) != 1:
        raise ValueError(f"expected one {members.kind} by name, got {sorted(written) or 'none'}")
    ((name, parameters),) = written.items()
    return members[name].model_validate({} if parameters is None else parameters)


def part_document(part: Any, info: SerializationInfo) -> dict[str, dict[str, Any]]:
    """The part as in a document. Without defaults, so that a record holds what the user set."""
    return {part.name: part.model_dump(mode=info.mode, by_alias=True, exclude_unset=True)}
