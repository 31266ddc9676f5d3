"""Finding the files that inputs name: shipped files by name, other files by path."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from streamquake.topologies.problems import did_you_mean

FOLDER = Path(__file__).parent
SHIPPED = FOLDER / "clusters"
JOBS = FOLDER / "jobs"
RULES = FOLDER / "rules"
LIBRARY = JOBS / "lib"
"""Modules that PySpark programs may import; they are shipped with every program, also to the
workers. They are not jobs."""

LONGEST_SHOWN = 80
LARGEST_TEXT_BYTES = 4 * 1024 * 1024
"""Limit for a program, a schema or a rule script: an untrusted document may name any file."""


def find_file(what: str, name: str, *, shipped: Path, suffix: str, beside: Path | None) -> Path:
    """A shipped file by its name, else a file by its path, each with or without its ending.

    A path is resolved from the folder `beside`, then from the current one. Raises LookupError, with
    the shipped names, where no file is found.
    """
    if (found := shipped_file(name, shipped, suffix)) is not None:
        return found
    given = _file_or_reason(name, beside, suffix)
    if isinstance(given, Path):
        return given
    raise LookupError(
        f'no {what} is called "{shorten(name)}", and {given}'
        f"{did_you_mean(name.removesuffix(suffix), shipped_names(shipped, suffix))}"
    )


def file_beside(name: str, beside: Path | None) -> Path:
    """A file by its path, from the folder `beside`, or else from the current one. Raises
    LookupError with its name and both folders, or with a path that leads to something else than a
    file."""
    found = _file_or_reason(name, beside, "")
    if isinstance(found, Path):
        return found
    raise LookupError(f'no file is called "{shorten(name)}": {found}')


def _file_or_reason(name: str, beside: Path | None, suffix: str) -> Path | str:
    """A file by its path, with or without its ending, or why there is none."""
    endings = ("",) if name.endswith(suffix) else ("", suffix)
    for folder in (beside, Path.cwd()):
        for ending in endings:
            if folder is not None and name and is_file(folder / f"{name}{ending}"):
                return folder / f"{name}{ending}"
        if folder is not None and name and os.path.lexists(folder / name):
            return f"{folder / name} is no regular file"
    places = " or ".join(str(folder) for folder in dict.fromkeys((beside, Path.cwd())) if folder)
    return f"there is no such file in {places}"


def shipped_file(name: str, shipped: Path, suffix: str) -> Path | None:
    """A shipped file by its name (with or without its ending); None where there is none."""
    return shipped_files(shipped, suffix).get(name.removesuffix(suffix))


@cache
def shipped_files(folder: Path, suffix: str) -> Mapping[str, Path]:
    """Name -> file of the shipped files of a kind, in the order of their names. They may be in
    folders by topic, which are not part of the names."""
    paths = (path for path in folder.rglob(f"*{suffix}") if path.parent != LIBRARY)
    return {path.stem: path for path in sorted(paths, key=lambda path: path.stem)}


@cache
def reserved_modules() -> frozenset[str]:
    """The names of modules that every PySpark program has: the program's own and the shipped
    ones."""
    return frozenset({"job", *(path.stem for path in LIBRARY.glob("*.py"))})


def is_shipped_job(name: str) -> bool:
    """Whether a shipped SQL file has this name."""
    return shipped_file(name, JOBS, ".sql") is not None


def read_text(path: Path) -> str:
    """The text of a file that a document names. Raises OSError, with a message for the user, for a
    path that is no regular file (a device or a pipe would never end), too large, or not text."""
    try:
        return read_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise OSError(errno.EILSEQ, "it is no text in UTF-8") from error


def named_text(path: Path) -> str:
    """The text of a file that a document names in its place; it has a line break, by which it is
    distinguished from a name. Raises ValueError, with the path, where it cannot be read."""
    try:
        text = read_text(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    return text if "\n" in text else f"{text}\n"


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises OSError, as `read_text`."""
    if not is_file(path):
        raise OSError(errno.ENOENT, "No such file")
    with path.open("rb") as opened:
        content = opened.read(LARGEST_TEXT_BYTES + 1)
    if len(content) > LARGEST_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST_TEXT_BYTES:,} bytes")
    return content


def is_file(path: Path) -> bool:
    """Whether a path leads to a file; False for an invalid path."""
    try:
        return path.is_file()
    except OSError:
        return False


def shorten(name: str) -> str:
    """A name as it is shown in messages."""
    return name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…"


def shipped_names(folder: Path, suffix: str) -> tuple[str, ...]:
    """The names of the shipped files of a kind, without their ending."""
    return tuple(shipped_files(folder, suffix))
