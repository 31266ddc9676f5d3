"""What makes two recorded experiments the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamquake.reports.record.secret_settings import hide_secrets

IGNORED_KEYS = ("seed", "description")
"""The keys of an experiment that are not compared."""


def compared_keys(document: Mapping[str, Any]) -> Any:
    """The part of an experiment's document that makes two of them the same."""
    return _without_empty(
        {key: value for key, value in hide_secrets(document).items() if key not in IGNORED_KEYS}
    )


def _without_empty(value: Any) -> Any:
    """A value without its empty parts, so that an unset key of a later version is no difference."""
    if isinstance(value, Mapping):
        parts = {key: _without_empty(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, {}, [], "")}
    return [_without_empty(part) for part in value] if isinstance(value, list | tuple) else value
