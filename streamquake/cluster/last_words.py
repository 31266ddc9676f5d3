"""What a container said before it ended, short enough for an error."""

from __future__ import annotations

from streamquake.cluster.runtime import ContainerRuntime

LINES = 15
LOOKED_AT = 400
"""Lines of the log that are looked at: a JVM's last words are often a trace of fifty frames under
the one line that says why."""


def last_words(runtime: ContainerRuntime, container: str) -> str:
    """The last lines of its log without the frames of Java traces, which would be all of it."""
    lines = runtime.logs(container, tail=LOOKED_AT).splitlines(keepends=True)
    return "".join([line for line in lines if not _is_frame(line)][-LINES:])


def _is_frame(line: str) -> bool:
    said = line.lstrip()
    return line != said and said.startswith(("at ", "... "))
