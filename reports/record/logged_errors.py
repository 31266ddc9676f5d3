"""The errors in the logs that a run saved: what the nodes logged as ERROR, and every stack trace.

An entry of a log begins with a line of a known form (`log_lines.py`); the lines after it belong to
it. Among these, one that seems to have the level of an error, outside of a stack trace, may be an
error of a form that is not known: it is doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from streamquake.reports.record import python_traceback
from streamquake.reports.record.log_lines import ERROR_LEVELS, FirstLine, first_line, is_doubtful
from streamquake.reports.record.python_traceback import (
    PythonTraceback,
    begins_traceback,
    tracebacks_in,
)

LOG = "log.txt"
FRAME = re.compile(r"^\s+at (?P<method>[\w.$<>/@-]+)\(")
EXCEPTION = re.compile(
    r"^(?:\s*(?P<cause>Caused by|Suppressed): |Exception in thread \"[^\"]*\" )?"
    r"(?P<name>(?:[A-Za-z_]\w*\.)+[A-Z][\w$]*)(?:: |$)"
)
THROWABLE = re.compile(r"(Exception|Error|Throwable|Interrupt|Failure)$")
OF_THE_JDK = ("java.", "javax.", "jdk.", "sun.")
VARYING = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}(?:[-_][0-9a-fA-F]+)*\b|\d+")
GENERATED = re.compile(r"(?<=\$)\d+|(?<=Lambda)[^.]+")
"""The numbers in the names of generated methods and classes, which differ between runs."""
INVISIBLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\ufeff]")
"""What a terminal does not show: colour codes (ECMA-48), control characters, byte order marks."""
DOUBT = "a line may be an error, but its form is not known"
FRAMES = 2
"""How many frames of the innermost cause tell one error from another."""
MAX_LINES = 400
"""How many lines of one entry are read; a stack overflow has a thousand. A stack trace that begins
after them is an entry of its own: they may be what a program prints."""
MAX_CHARACTERS = 300
"""How much of a message tells one error from another without a stack trace."""


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One entry of a node's log; without a level, lines that belong to no entry."""

    level: str
    logger: str
    message: str
    more: tuple[str, ...] = ()
    """The lines after the first one: the rest of the message, and a stack trace."""
    doubtful_beyond: tuple[str, ...] = ()
    """The doubtful lines after those of `more`, where the entry has too many lines."""

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The lines that may be errors of a form that is not known."""
        end_of_trace = max(
            (n for n, line in enumerate(self.more, 1) if _is_of_trace(line)), default=0
        )
        of_python = {each.error for each in self._python_tracebacks}
        after = (line for line in self.more[end_of_trace:] if line not in of_python)
        return (*filter(is_doubtful, after), *self.doubtful_beyond)

    @property
    def exceptions(self) -> tuple[tuple[str, str], ...]:
        """(class, its line) of each exception of the stack trace, from the outermost to the
        innermost cause; empty without a stack trace."""
        if not self._is_trace:
            return ()
        found = []
        for line in (self.message, *self.more):
            if match := _exception_in(line):
                found.append((match["name"], line.strip()))
        found += [(each.exception, each.error) for each in self._python_tracebacks]
        return tuple(dict.fromkeys(found))

    @property
    def is_error(self) -> bool:
        return self.level in ERROR_LEVELS or self._is_trace

    @property
    def signature(self) -> str:
        """What is the same for all errors of this kind: the classes of its exceptions and where the
        innermost one was thrown; without exceptions the logger, and the message without what
        varies."""
        if self.exceptions:
            what = " <- ".join(dict.fromkeys(name for name, _ in self.exceptions))
        else:
            message = VARYING.sub("#", self.message)[:MAX_CHARACTERS]
            what = f"{self.level} {self.logger}: {message}"
        frames = self._frames_of_the_cause()
        return what + (f" at {', '.join(frames)}" if frames else "")

    @property
    def text(self) -> str:
        """The first line, and those of the exceptions."""
        first = f"{self.logger}: {self.message}" if self.logger else self.message
        lines = dict.fromkeys((first, *(line for _, line in self.exceptions)))
        return "\n".join(line for line in lines if line)

    @property
    def _is_trace(self) -> bool:
        return bool(self._python_tracebacks) or any(
            FRAME.match(line) or line.lstrip().startswith("Caused by: ") for line in self.more
        )

    @cached_property
    def _python_tracebacks(self) -> tuple[PythonTraceback, ...]:
        return tuple(tracebacks_in((self.message, *self.more)))

    def _frames_of_the_cause(self) -> tuple[str, ...]:
        frames: list[str] = []
        for line in self.more:
            if EXCEPTION.match(line) and "Suppressed: " not in line:
                frames = []
            elif match := FRAME.match(line):
                frames.append(GENERATED.sub("#", match["method"]).rpartition("/")[2])
        own = [frame for frame in frames if not frame.startswith(OF_THE_JDK)]
        of_python = [frame for each in self._python_tracebacks[-1:] for frame in each.frames]
        return tuple((own or frames)[:FRAMES] + of_python[:FRAMES])


@dataclass(kw_only=True)
class LoggedError:
    """All errors of one signature."""

    signature: str
    text: str
    """The text of the first one."""
    nodes: dict[str, int] = field(default_factory=dict)
    """Folder of the node's log -> how often it logged the error."""

    @property
    def count(self) -> int:
        return sum(self.nodes.values())


def entries_of(lines: Iterable[str]) -> Iterator[LogEntry]:
    """The entries of a log, and the lines before the first one as an entry without a level."""
    first, more, beyond = FirstLine(level=""), list[str](), list[str]()
    for line in (INVISIBLE.sub("", line.rstrip("\r\n")) for line in lines):
        begins = first_line(line)
        if begins is None and len(more) >= MAX_LINES:
            begins = _late_trace(line, more)
        if begins is not None:
            yield from _entry(first, more, beyond)
            first, more, beyond = begins, list(begins.more), []
        elif len(more) < MAX_LINES:
            more.append(line)
        elif is_doubtful(line) and not _is_of_trace(line):
            beyond.append(line)
    yield from _entry(first, more, beyond)


def _entry(first: FirstLine, more: list[str], beyond: list[str]) -> Iterator[LogEntry]:
    """The entry of these lines, none where there are no lines."""
    if first.level or more:
        yield LogEntry(
            level=first.level,
            logger=first.logger,
            message=first.message,
            more=tuple(more),
            doubtful_beyond=tuple(beyond),
        )


def _is_of_trace(line: str) -> bool:
    """Whether the line is a frame of a stack trace, of Java or Python, or one of its exceptions."""
    return bool(FRAME.match(line) or _exception_in(line) or python_traceback.FRAME.match(line))


def _late_trace(line: str, before: Iterable[str]) -> FirstLine | None:
    """The beginning of a stack trace after the lines of a long entry, None if the line begins none.
    A frame or a cause begins one where none of these lines belongs to a trace."""
    if _begins_trace(line):
        return FirstLine(level="", message=line)
    if _is_of_trace(line) and not any(map(_is_of_trace, before)):
        return FirstLine(level="", message=line.strip(), more=(line,))
    return None


def _begins_trace(line: str) -> bool:
    """Whether a stack trace may begin, of Java or Python, and not only one of its causes."""
    match = _exception_in(line)
    return (match is not None and not match["cause"]) or begins_traceback(line)


def _exception_in(line: str) -> re.Match[str] | None:
    """The exception with which a line of a stack trace begins."""
    match = EXCEPTION.match(line)
    return match if match and (match["cause"] or THROWABLE.search(match["name"])) else None


@dataclass(frozen=True, kw_only=True)
class ReadLog:
    """What one node's log says about errors."""

    errors: tuple[LogEntry, ...]
    doubtful: tuple[str, ...]
    """Lines that may be errors of a form that is not known: the first one of each kind."""


def read_log(log: Path) -> ReadLog:
    """The errors of one node's log. Raises OSError, and ValueError for a log with text but without
    any line that begins an entry: no error could be told in it."""
    errors: list[LogEntry] = []
    doubtful: dict[str, str] = {}
    has_entries = False
    with log.open(encoding="utf-8", errors="replace") as lines:
        for entry in entries_of(lines):
            has_entries = has_entries or bool(entry.level)
            if entry.is_error:
                errors.append(entry)
            for line in entry.doubtful:
                doubtful.setdefault(VARYING.sub("#", line), line)
    if not has_entries and log.stat().st_size:
        raise ValueError("no line begins with a time stamp and a level")
    return ReadLog(errors=tuple(errors), doubtful=tuple(doubtful.values()))


def errors_of_run(
    logs: Path, leave_out: Callable[[Path, Exception], None]
) -> Iterator[tuple[str, LogEntry]]:
    """(folder of the node's log, error) of all nodes of a run. A log that cannot be read, and one
    that is not read in full, is passed to `leave_out` with the reason."""
    for log in sorted(logs.glob(f"*/{LOG}")):
        try:
            read = read_log(log)
        except (OSError, ValueError) as error:
            leave_out(log, error)
            continue
        if read.doubtful:
            leave_out(log, ValueError(f"{DOUBT}: {read.doubtful[0]}"))
        yield from ((log.parent.name, error) for error in read.errors)


def grouped(errors: Iterable[tuple[str, LogEntry]]) -> tuple[LoggedError, ...]:
    """The errors of (node, entry) by signature, the most frequent first."""
    groups: dict[str, LoggedError] = {}
    for node, entry in errors:
        signature = entry.signature
        group = groups.setdefault(signature, LoggedError(signature=signature, text=entry.text))
        group.nodes[node] = group.nodes.get(node, 0) + 1
    return tuple(sorted(groups.values(), key=lambda group: (-group.count, group.signature)))
