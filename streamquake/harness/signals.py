"""Ctrl-C and SIGTERM: end the run in order, once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = "already stopping: healing, collecting logs, removing containers"


class Interrupted(BaseException):
    """The user or the system asked the run to end; not an Exception, so no guard swallows it."""


@contextmanager
def interruptible(say: Callable[[str], None]) -> Iterator[None]:
    """Turn the first SIGINT or SIGTERM into Interrupted; later ones only get a word.

    Clean-up must not be cut short by an impatient second Ctrl-C, or leftovers stay. Outside the
    main thread signals cannot be caught, and nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            say(STOPPING)
            return
        asked = True
        raise Interrupted(signal.Signals(number).name)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
