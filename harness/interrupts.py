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
    """The user or the system asked the run to end; not an Exception, so no guard swallows it."""


@dataclass
class InterruptRequest:
    """Whether the run was asked to end. It tells also where a library's bare `except` swallowed
    the Interrupted, as Py4J's do."""

    signal: str = ""
    """The name of the signal; nothing while there was none."""


@contextmanager
def interruptible(show_message: Callable[[str], None]) -> Iterator[InterruptRequest]:
    """Turn the first SIGINT or SIGTERM into Interrupted; later ones only get a word.

    Clean-up must not be cut short by an impatient second Ctrl-C, or leftovers stay. Outside the
    main thread signals cannot be caught, and nothing is changed.
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
