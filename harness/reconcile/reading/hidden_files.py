"""The files that Spark ignores by their names."""

from __future__ import annotations

from pathlib import PurePath

COPYING_SUFFIX = "._COPYING_"
"""Suffix of a file that Hadoop's client is still copying."""


def is_hidden(path: PurePath) -> bool:
    """Whether Spark ignores a file by its name or by that of a folder (InMemoryFileIndex). A
    partition folder may begin with an underscore."""
    return any(
        is_pending(name) or (name.startswith("_") and "=" not in name) for name in path.parts
    )


def is_pending(name: str) -> bool:
    """Whether a name is one that Flink or Hadoop's client gives a file until it is complete."""
    return name.startswith(".") or name.endswith(COPYING_SUFFIX)
