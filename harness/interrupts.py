"""Ctrl-C and SIGTERM: end the run in order, once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOPPING = "already stopping: healing, collecting logs, removing containers"


class Interrupted(BaseException):
    """The user or the system requested the end of the run. A BaseException, so that no handler of
    errors swallows it."""


@dataclass
class InterruptRequest:
    """Whether the end of the run was requested. It is known even where a bare `except` of a library
    swallowed the Interrupted, as in Py4J."""

    signal: str = ""
    """The name of the signal; empty before the first one."""


@contextmanager
def interruptible(show_message: Callable[[str], None]) -> Iterator[InterruptRequest]:
    """Turn the first SIGINT or SIGTERM into Interrupted; later ones only show a message.

    A second Ctrl-C must not end the clean-up early, or containers are left over. Outside the main
    thread signals cannot be caught, and nothing is changed.
    """
    requested = InterruptRequest()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if requested.signal:
            show_message(STOPPING)
            return
        requested.signal = signal.Signals(number).name
        raise Interrupted(requested.signal)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
