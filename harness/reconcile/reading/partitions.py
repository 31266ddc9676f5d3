"""Partition folders: `out/day=2026-01-02/k=7/part-0.parquet` has the columns `day` and `k`.

Hive introduced them; Spark and DuckDB write and read them. Spark derives the columns and their
types (whole numbers, fractions, dates, times, else text) below a base folder. This file finds the
base folder, and checks that all files of a side are in the same folders: Spark silently ignores
files that are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import PurePosixPath
from urllib.parse import unquote

DIFFERENT_FOLDERS = "its files are not all in the same NAME=VALUE folders, so these give no columns"
ODD_NUMBER = (
    "Spark reads {} as a number that this text is not, so the NAME=VALUE folders give no columns"
)
NUMBER = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    r"|0[xX][0-9a-fA-F.]+[pP][+-]?\d+)[dDfF]?)[\x00-\x20]*"
)
"""Text that Java reads as a number, such as `1d`, `1f`, `0x8p-3`, `NaN` and `1` with a blank."""
PLAIN_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
MAX_DIGITS = 38
"""Spark reads whole numbers of so many digits exactly, and all others as floating point."""
NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, kw_only=True)
class Partitions:
    """The columns from partition folders; empty where there are none."""

    base: str = ""
    """The folder that contains the partition folders."""
    names: tuple[str, ...] = ()
    note: str = ""
    """Why there are no columns, although some folders look like partition folders."""

    @property
    def options(self) -> Mapping[str, str]:
        """The options for Spark's readers."""
        return {"basePath": self.base} if self.names else {}

    def without_conflicts(self, fields: Iterable[str]) -> Partitions:
        """These columns, or none where a file has a field with the name of one, ignoring case."""
        lowered = {name.lower() for name in self.names}
        return Partitions() if lowered & {name.lower() for name in fields} else self


def partitions_of(files: Iterable[tuple[str, str]]) -> Partitions:
    """The columns from the folders of some files. Each file is a path and the searched folder."""
    values: dict[tuple[str, tuple[str, ...]], set[tuple[str, ...]]] = {}
    for path, folder in files:
        base_folder, names, column_values = _partition_folders(path, folder)
        values.setdefault((base_folder, names), set()).add(column_values)
    if not any(names for _, names in values):
        return Partitions()
    if len(values) > 1:
        return Partitions(note=DIFFERENT_FOLDERS)
    ((base, names),) = values
    for column in zip(*values[base, names], strict=True):
        if (odd_number := _odd_number(set(column) - {NULL})) is not None:
            return Partitions(note=ODD_NUMBER.format(repr(odd_number)))
    return Partitions(base=base, names=names)


def _odd_number(values: set[str]) -> str | None:
    """A value that Spark would not read as exactly its number, where it would read all values as
    numbers."""
    if not all(map(NUMBER.fullmatch, values)):
        return None
    return min((value for value in values if not _is_exact(value)), default=None)


def _is_exact(text: str) -> bool:
    """Whether Spark reads a text as exactly the number that it is, so that no two folders with
    different numbers are one."""
    if not PLAIN_NUMBER.fullmatch(text):
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent too large for Python, and for Java
        return False
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    is_whole = exponent >= 0 and number.adjusted() < MAX_DIGITS and len(digits) <= MAX_DIGITS
    return is_whole or number == Decimal(repr(float(text)))


def _partition_folders(path: str, base: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The folder in which a file's innermost run of NAME=VALUE folders begins, their names, and
    their values."""
    within = PurePosixPath(path.removeprefix(base)) if path.startswith(base) else PurePosixPath()
    folders = list(within.parent.parts) if base else []
    # Spark rejects partition folders without a name or a value.
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
