"""The base of every error of Streamquake, and the exit status of each kind of error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import ClassVar

PY4J = re.compile(r"An error occurred while calling \S+\.\n: ")
"""How py4j begins the text of an error that Java raised (`get_return_value` of `protocol.py`)."""
CAUSED_BY = "Caused by: "
LONGEST_CAUSE = 400
FAILED_TASK = "Job aborted due to stage failure"
"""What Spark says first of an error within a task; the cause says more."""


class ExitStatus(IntEnum):
    """The exit status of a command."""

    HELD = 0
    VIOLATED = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    """Undecided or failed to run; the kind of error is printed."""
    INTERRUPTED = 130


class ErrorKind(StrEnum):
    """The cause of a missing verdict."""

    BAD_INPUT = "bad input"
    ENGINE_MISSING = "engine missing"
    """No container engine is reachable, or the user has no permission to use it."""
    IMAGE_FAILED = "image failed"
    """An image is not known, or could not be built."""
    MACHINE_UNSUITABLE = "machine unsuitable"
    """Java is missing, the disk is full, or the operating system rejected an operation."""
    CLUSTER_FAILED = "cluster failed"
    """A container or a system in it did not start, ended, rejected a call or was unreachable."""
    UNDECIDED = "undecided"
    """Nothing failed, but nothing could be proven."""
    INTERNAL = "internal error"
    """A bug in Streamquake."""

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.BAD_INPUT if self == ErrorKind.BAD_INPUT else ExitStatus.UNDECIDED


class StreamquakeError(Exception):
    """Every error that Streamquake raises itself; each class has a kind.

    `Interrupted` is the exception: it is a BaseException, so that no handler of errors swallows it.
    """

    kind: ClassVar[ErrorKind] = ErrorKind.INTERNAL


def kind_of(error: BaseException) -> ErrorKind:
    """The kind of any error. An error of another library is a bug in Streamquake, unless a system
    was unreachable or the operating system raised it."""
    if isinstance(error, StreamquakeError):
        return error.kind
    if isinstance(error, ConnectionError | TimeoutError):
        return ErrorKind.CLUSTER_FAILED
    return ErrorKind.MACHINE_UNSUITABLE if isinstance(error, OSError) else ErrorKind.INTERNAL


def common_cause(causes: Iterable[str]) -> str:
    """The cause that represents several: the first failure, or `undecided` if nothing failed.

    An empty cause counts as none.
    """
    failures = (cause for cause in causes if cause not in ("", ErrorKind.UNDECIDED))
    return next(failures, ErrorKind.UNDECIDED)


def message_of(error: BaseException) -> str:
    """The class and the text of an error, without the stack frames of Java. Of an error of Java
    itself, as py4j raises it, its first line and its innermost cause."""
    text = str(error)
    if (of_java := PY4J.match(text)) is None:
        return f"{type(error).__name__}: {without_frames(text).strip()}"
    trace = text[of_java.end() :]
    first = " ".join(trace.partition("\n")[0].split())
    if CAUSED_BY not in trace:
        return first
    cause = root_cause(trace)
    return cause if FAILED_TASK in first else f"{first}; caused by {cause}"


def reason_of(error: BaseException) -> str:
    """The text of an error that says itself what is wrong, as that of a damaged or missing file
    does; of any other error, its class too."""
    says_it = isinstance(error, StreamquakeError | ValueError | OSError) and str(error).strip()
    return without_frames(str(error)).strip() if says_it else message_of(error)


def root_cause(stack_trace: str) -> str:
    """The innermost cause of a Java stack trace, without its frames."""
    lines = [line for line in stack_trace.splitlines() if line.strip()]
    starts = [n for n, line in enumerate(lines) if line.startswith(CAUSED_BY)]
    begin = starts[-1] if starts else 0
    message = []
    for line in lines[begin:]:
        if line.lstrip().startswith(("at ", "... ")):
            break
        message.append(line.strip())
    return " ".join(message).removeprefix(CAUSED_BY)[:LONGEST_CAUSE]


def without_frames(text: str) -> str:
    """A text without the lines in which Java lists the calls that led to an error."""
    return "".join(line for line in text.splitlines(keepends=True) if not _is_frame(line))


def _is_frame(line: str) -> bool:
    message = line.lstrip()
    return line != message and message.startswith(("at ", "... "))
