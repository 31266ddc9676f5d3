"""The engine's event stream, on separate connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from docker.types.daemon import CancellableStream

from streamquake.cluster.runtime.docker.connection import connect, translate_errors
from streamquake.cluster.runtime.runtime import ContainerError, ContainerEvent

WATCHED = ("die", "oom", "start")
NOT_LABELS = frozenset({"image", "name", "exitCode", "execDuration", "signal"})
"""Attributes that the engine adds to a container's labels."""


class Events:
    """Event streams that one thread follows and another closes."""

    def __init__(self) -> None:
        self._open: list[CancellableStream[Any]] = []
        self._lock = threading.Lock()

    def follow(self, filters: list[str]) -> Iterator[ContainerEvent]:
        """The events from now on: the stream is opened before this returns, not at the first
        read."""
        with translate_errors("the engine's events"):
            stream = connect(limit_s=None).events(
                decode=True,
                filters={"type": "container", "label": filters, "event": list(WATCHED)},
            )
        with self._lock:
            self._open.append(stream)
        return self._read(stream)

    def close(self) -> None:
        with self._lock:
            streams, self._open = self._open, []
        for stream in streams:
            with translate_errors("closing the engine's events"):
                stream.close()

    def _read(self, stream: CancellableStream[Any]) -> Iterator[ContainerEvent]:
        with translate_errors("the engine's events"):
            for event in stream:
                yield _event(event)
        with self._lock:
            closed = stream not in self._open
        if not closed:
            raise ContainerError(
                "the engine's events ended before the run did; was the engine restarted?"
            )


def _event(event: Mapping[str, Any]) -> ContainerEvent:
    about: Mapping[str, str] = event["Actor"]["Attributes"]
    code = about.get("exitCode")
    return ContainerEvent(
        id=event["Actor"]["ID"],
        action=event["Action"],
        labels={key: value for key, value in about.items() if key not in NOT_LABELS},
        epoch_ms=event["timeNano"] // 1_000_000,
        exit_code=None if code is None else int(code),
    )
