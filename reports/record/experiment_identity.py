"""What makes two recorded experiments the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamquake.reports.record.secret_settings import hide_secrets

IGNORED_KEYS = ("seed", "description")
"""The keys of an experiment that are not compared."""


def compared_keys(document: Mapping[str, Any]) -> Any:
    """The part of an experiment's document that makes two of them the same."""
    compared = {k: value for k, value in hide_secrets(document).items() if k not in IGNORED_KEYS}
    return _without_empty({**compared, "workload": _without_place(compared.get("workload"))})


def _without_place(workload: Any) -> Any:
    """A load without the path of its file, where it has the checksum of what the file holds."""
    if not isinstance(workload, Mapping):
        return workload
    return {
        name: {key: value for key, value in parameters.items() if key != "file"}
        if isinstance(parameters, Mapping) and parameters.get("sha256")
        else parameters
        for name, parameters in workload.items()
    }


def _without_empty(value: Any) -> Any:
    """A value without its empty parts, so that an unset key of a later version is no difference."""
    if isinstance(value, Mapping):
        parts = {key: _without_empty(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, {}, [], "")}
    return [_without_empty(part) for part in value] if isinstance(value, list | tuple) else value
