"""Whether other threads of Python have work at this moment, by the kernel's state of each.

https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
"""

from __future__ import annotations

import os
import threading

TASKS = "/proc/self/task"
WAITING = (b"S", b"I")
"""States of a thread that waits for another, or for a signal: sleeping, and idle."""
LONGEST = 100
"""Bytes that include the name and the state; the name has 15 at most."""


def others_are_runnable() -> bool:
    """Whether another thread runs, waits for a processor, or for a disk. True where the kernel does
    not say."""
    own = threading.get_native_id()
    others = (each.native_id for each in threading.enumerate())
    return any(_is_runnable(each) for each in others if each not in (None, own))


def _is_runnable(task: int | None) -> bool:
    try:
        with open(f"{TASKS}/{task}/stat", "rb", buffering=0) as file:
            stat = file.read(LONGEST)
    except ProcessLookupError:
        return False  # it has just ended
    except OSError:
        return not os.path.isdir(TASKS)
    # The name of a thread, in parentheses, may contain spaces and parentheses.
    return stat[stat.rindex(b")") + 2 :][:1] not in WAITING
