"""The log tail of a container that ended, short enough for an error message."""

from __future__ import annotations

from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.topologies.errors import without_frames

LINES = 15
READ_LINES = 400
"""The lines of the log that are read: a JVM's log often ends with fifty frames of a stack trace
after the line that states the reason."""


def log_tail(runtime: ContainerRuntime, container: str) -> str:
    """The last lines of a container's log without the frames of Java stack traces, which would fill
    them."""
    text = without_frames(runtime.logs(container, tail=READ_LINES))
    return "".join(text.splitlines(keepends=True)[-LINES:])
