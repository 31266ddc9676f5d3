"""The errors in the logs that a run saved: what the nodes logged as ERROR, and every stack trace.

An entry of a log begins with a line of time stamp and level, as the engines write it by Log4j, and
as Logback and Python's `logging` write it, with the thread between the two; the lines after it
belong to it. An error also begins with a line that has its level alone, as programs print it. What
a JVM prints by itself when it ends, or instead of its start, has no such line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from streamquake.reports.record import python_traceback
from streamquake.reports.record.python_traceback import PythonTraceback, tracebacks_in

LOG = "log.txt"
ERROR_LEVELS = ("ERROR", "FATAL", "CRITICAL", "SEVERE")
_ERROR = "|".join(ERROR_LEVELS)
ENTRY = re.compile(
    r"^\[?(?:\d{2,4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d\S*\s+(?:- )?(?:\[[^\]]*\]\s+)?"
    rf"(?P<level>TRACE|DEBUG|INFO|WARN(?:ING)?|{_ERROR})\b:?\s*(?P<rest>.*)$"
)
ERROR_WITHOUT_TIME = re.compile(rf"^(?:\[[^\]]*\]\s+)?(?P<level>{_ERROR})[:\s]\s*(?P<rest>.*)$")
LOGGER = re.compile(r"^(?P<logger>[\w.$-]+)(?: \[[^\]]*\])?(?: - |: )(?P<message>.*)$")
PRINTED_BY_JVM = re.compile(
    r"^(Exception in thread |Terminating due to |# A fatal error |\*\*\* FATAL|Aborting due to "
    r"|Exception: \S+ thrown from the UncaughtExceptionHandler|Error occurred during initialization"
    r"|Error: (Could not (find or load|create) |Unable to |A JNI error |A fatal exception ))"
)
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

    @property
    def exceptions(self) -> tuple[tuple[str, str], ...]:
        """(class, its line) of each exception of the stack trace, from the outermost to the
        innermost cause; empty without a stack trace."""
        if not self._is_trace:
            return ()
        found = []
        for line in (self.message, *self.more):
            match = EXCEPTION.match(line)
            if match and (match["cause"] or THROWABLE.search(match["name"])):
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
    level = logger = message = ""
    more: list[str] = []
    for line in (INVISIBLE.sub("", line.rstrip("\r\n")) for line in lines):
        begins = ENTRY.match(line) or ERROR_WITHOUT_TIME.match(line)
        printed = PRINTED_BY_JVM.match(line)
        if begins or printed or (len(more) >= MAX_LINES and _begins_trace(line)):
            if level or more:
                yield LogEntry(level=level, logger=logger, message=message, more=tuple(more))
            level, more = begins["level"] if begins else "FATAL" if printed else "", []
            named = LOGGER.match(begins["rest"]) if begins else None
            logger = named["logger"] if named else ""
            message = named["message"] if named else begins["rest"] if begins else line
        elif len(more) < MAX_LINES:
            more.append(line)
    if level or more:
        yield LogEntry(level=level, logger=logger, message=message, more=tuple(more))


def _begins_trace(line: str) -> bool:
    """Whether a stack trace may begin, of Java or Python, and not only one of its causes."""
    match = EXCEPTION.match(line)
    of_java = match is not None and not match["cause"] and THROWABLE.search(match["name"])
    return bool(of_java) or line == python_traceback.HEADER


def errors_in(log: Path) -> list[LogEntry]:
    """The errors of one node's log. Raises OSError, and ValueError for a log with text but without
    any line that begins an entry: no error could be told in it."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        errors, has_entries = [], False
        for entry in entries_of(lines):
            has_entries = has_entries or bool(entry.level)
            if entry.is_error:
                errors.append(entry)
    if not has_entries and log.stat().st_size:
        raise ValueError("no line begins with a time stamp and a level")
    return errors


def errors_of_run(
    logs: Path, leave_out: Callable[[Path, Exception], None]
) -> Iterator[tuple[str, LogEntry]]:
    """(folder of the node's log, error) of all nodes of a run. A log that cannot be read is passed
    to `leave_out` with the reason."""
    for log in sorted(logs.glob(f"*/{LOG}")):
        try:
            errors = errors_in(log)
        except (OSError, ValueError) as error:
            leave_out(log, error)
            continue
        yield from ((log.parent.name, error) for error in errors)


def grouped(errors: Iterable[tuple[str, LogEntry]]) -> tuple[LoggedError, ...]:
    """The errors of (node, entry) by signature, the most frequent first."""
    groups: dict[str, LoggedError] = {}
    for node, entry in errors:
        signature = entry.signature
        group = groups.setdefault(signature, LoggedError(signature=signature, text=entry.text))
        group.nodes[node] = group.nodes.get(node, 0) + 1
    return tuple(sorted(groups.values(), key=lambda group: (-group.count, group.signature)))
