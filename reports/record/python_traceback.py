"""The tracebacks of Python in the lines of a log: a PySpark program prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

HEADER = "Traceback (most recent call last):"
GROUP = re.compile(rf"^(?P<indent>\s+)[+|] (?:Exception Group )?{re.escape(HEADER)}$")
"""The header of a group of exceptions, and of one of them: a margin is before each line."""
FRAME = re.compile(r'^\s+File "(?P<file>[^"]*)", line \d+, in (?P<function>.+)$')


@dataclass(frozen=True, kw_only=True)
class PythonTraceback:
    """One traceback."""

    error: str
    """The line of its exception, after the frames."""
    frames: tuple[str, ...]
    """Function and file of each frame, the innermost first."""

    @property
    def exception(self) -> str:
        """The class of the exception."""
        return self.error.partition(":")[0]


def tracebacks_in(lines: Iterable[str]) -> Iterator[PythonTraceback]:
    """The complete tracebacks in these lines. The header may follow other text, as in an exception
    of Java that has one in its message."""
    frames: list[str] | None = None
    margin = ""
    for line in lines:
        if line.endswith(HEADER):
            frames, group = [], GROUP.match(line)
            margin = f"{group['indent']}| " if group else ""
            continue
        if frames is None:
            continue
        text = line.removeprefix(margin)
        if match := FRAME.match(text):
            frames.insert(0, f"{match['function']} ({PurePosixPath(match['file']).name})")
        elif text[:1].strip():
            yield PythonTraceback(error=text, frames=tuple(frames))
            frames = None


def begins_traceback(line: str) -> bool:
    """Whether the line is the header of a traceback, and nothing else."""
    return line == HEADER or GROUP.match(line) is not None
