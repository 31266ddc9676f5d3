"""The log tail of a container that ended, short enough for an error message."""

from __future__ import annotations

from streamquake.cluster.runtime.runtime import ContainerRuntime

LINES = 15
LOOKED_AT = 400
"""Lines of the log that are read: a JVM's log often ends with a trace of fifty frames below the one
line that states the reason."""


def log_tail(runtime: ContainerRuntime, container: str) -> str:
    """The last lines of its log without the frames of Java traces, which would be all of it."""
    message = without_frames(runtime.logs(container, tail=LOOKED_AT))
    return "".join(message.splitlines(keepends=True)[-LINES:])


def without_frames(text: str) -> str:
    """A text without the lines in which Java lists the calls that led to an error."""
    return "".join(line for line in text.splitlines(keepends=True) if not _is_frame(line))


def _is_frame(line: str) -> bool:
    message = line.lstrip()
    return line != message and message.startswith(("at ", "... "))
