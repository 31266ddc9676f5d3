"""Folders that name a value: `out/day=2026-01-02/k=7/part-0.parquet` has the columns `day` and `k`.

Hive began with it, Spark and DuckDB write and read it. Spark makes the columns, and finds their
types (whole numbers, fractions, dates, times, else text), once it is told where to begin; here is
said where that is, and whether all files of a side stand in the same folders. Spark leaves out
without a word those that do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

DIFFERENT_FOLDERS = (
    "its files do not all stand in the same NAME=VALUE folders, so these give no columns"
)
ODD_NUMBER = "Spark takes {} for a number, so the NAME=VALUE folders give no columns"
NUMBER = re.compile(r"\s*[+-]?(?:[\d.]+(?:[eE][+-]?\d+)?|0[xX][0-9a-fA-F.]+[pP][+-]?\d+)[dDfF]?\s*")
"""What Java reads as a number: `1d`, `1f`, `0x8p-3` and `1` with a blank are one to it."""
PLAIN = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
NULL = "__HIVE_DEFAULT_PARTITION__"


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
    values: dict[tuple[str, tuple[str, ...]], set[tuple[str, ...]]] = {}
    for path, folder in files:
        above, names, message = _above(path, folder)
        values.setdefault((above, names), set()).add(message)
    if not any(names for _, names in values):
        return Partitions()
    if len(values) > 1:
        return Partitions(note=DIFFERENT_FOLDERS)
    ((base, names),) = values
    for column in zip(*values[base, names], strict=True):
        if (odd := _odd_number(set(column) - {NULL})) is not None:
            return Partitions(note=ODD_NUMBER.format(repr(odd)))
    return Partitions(base=base, names=names)


def _odd_number(values: set[str]) -> str | None:
    """One of some values that is no number, where Spark takes all of them for numbers."""
    if not all(map(NUMBER.fullmatch, values)):
        return None
    return min((value for value in values if not PLAIN.fullmatch(value)), default=None)


def _above(path: str, base: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The folder in which a file's innermost run of NAME=VALUE folders begins, their names, and
    their values."""
    within = PurePosixPath(path.removeprefix(base)) if path.startswith(base) else PurePosixPath()
    folders = list(within.parent.parts) if base else []
    # Where Spark looks for columns, it takes no folder without a name or a value.
    if any(folder.startswith("=") or folder.partition("=")[1:] == ("=", "") for folder in folders):
        return "", (), ()
    while folders and "=" not in folders[-1]:
        folders.pop()
    named: list[tuple[str, str]] = []
    while folders and "=" in folders[-1]:
        name, _, value = folders.pop().partition("=")
        named.insert(0, (unquote(name), unquote(value)))
    above = "/".join([base.rstrip("/"), *folders]) if named else ""
    return above, tuple(name for name, _ in named), tuple(value for _, value in named)
