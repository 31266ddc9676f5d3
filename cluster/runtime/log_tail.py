"""The log tail of a container that ended, short enough for an error message."""

from __future__ import annotations

from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.topologies.errors import without_frames

LINES = 15
LOOKED_AT = 400
"""Lines of the log that are read: a JVM's log often ends with a trace of fifty frames below the one
line that states the reason."""


def log_tail(runtime: ContainerRuntime, container: str) -> str:
    """The last lines of its log without the frames of Java traces, which would be all of it."""
    message = without_frames(runtime.logs(container, tail=LOOKED_AT))
    return "".join(message.splitlines(keepends=True)[-LINES:])
