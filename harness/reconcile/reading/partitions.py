"""Folders that name a value: `out/day=2026-01-02/k=7/part-0.parquet` has the columns `day` and `k`.

Hive began with it, Spark and DuckDB write and read it. Spark makes the columns, and finds their
types (whole numbers, fractions, dates, times, else text), once it is told where to begin; here is
said where that is, and whether all files of a side stand in the same folders. Spark leaves out
without a word those that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

UNLIKE = "its files do not all stand in the same NAME=VALUE folders, so these give no columns"


@dataclass(frozen=True, kw_only=True)
class Partitions:
    """The columns that folders name: none where they name none."""

    base: str = ""
    """The folder below which they stand."""
    names: tuple[str, ...] = ()
    note: str = ""
    """Why there are no columns, though some folders look so."""

    @property
    def options(self) -> Mapping[str, str]:
        """What Spark's readers must be told."""
        return {"basePath": self.base} if self.names else {}

    def without(self, fields: Iterable[str]) -> Partitions:
        """The same, or none where a file has a field that is called like a folder, but for case."""
        named = {name.lower() for name in self.names}
        return Partitions() if named & {name.lower() for name in fields} else self


def partitions_of(files: Iterable[tuple[str, str]]) -> Partitions:
    """What the folders of some files say: of each its path, and the folder it was looked for in."""
    found = {_above(path, base) for path, base in files}
    if not any(names for _, names in found):
        return Partitions()
    if len(found) > 1:
        return Partitions(note=UNLIKE)
    base, names = found.pop()
    return Partitions(base=base, names=names)


def _above(path: str, base: str) -> tuple[str, tuple[str, ...]]:
    """The folder in which a file's innermost run of NAME=VALUE folders begins, and their names."""
    within = PurePosixPath(path.removeprefix(base)) if path.startswith(base) else PurePosixPath()
    folders = list(within.parent.parts) if base else []
    while folders and "=" not in folders[-1]:
        folders.pop()
    names: list[str] = []
    while folders and "=" in folders[-1]:
        names.insert(0, unquote(folders.pop().partition("=")[0]))
    return "/".join([base.rstrip("/"), *folders]) if names else "", tuple(names)
