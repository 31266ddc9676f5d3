"""The labels on all resources that the harness creates, by which leftovers are found."""

from __future__ import annotations

import os
from collections.abc import Mapping

RUN = "streamquake.run"
NODE = "streamquake.node"
SANDBOX = "streamquake.sandbox"
"""On a node's sandbox instead of NODE: the name of the node."""
OWNER = "streamquake.owner"
"""The process that owns the run, as host:pid:start-time; empty for a cluster kept by `up`."""
FOLDER = "streamquake.folder"
"""The run folder, where a later command finds the topology and the open faults."""
PORTS = "streamquake.ports"
"""Published ports as inside:outside, comma-separated."""
ADDRESS = "streamquake.address"
SETTINGS = "streamquake.settings"
"""On a replaced node: its engine settings in addition to the topology's, as JSON."""
REAPER = "streamquake.reaper"
"""On a run's reaper instead of RUN: with RUN it would remove itself before it has finished."""
ENDED = "ended"
"""Instead of the start time of a process that has ended."""


def owner_of_this_process() -> str:
    """host:pid:start, so that a reused pid is not taken for the old owner."""
    return f"{os.uname().nodename}:{os.getpid()}:{_start_of(os.getpid())}"


def owner_is_alive(labels: Mapping[str, str]) -> bool:
    """Whether the owner of a labelled resource still runs; True for clusters kept by `up`."""
    owner = labels.get(OWNER, "")
    if not owner:
        return True
    host, pid, start = owner.rsplit(":", 2)
    return host != os.uname().nodename or _start_of(int(pid)) == start


def _start_of(pid: int) -> str:
    """The kernel's start time of a process in clock ticks; "0" where there is no /proc.

    A process that has ended without a `wait` of its parent still has an entry: it counts as ended.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return _start_without_proc(pid)
    return ENDED if fields[0] in "ZX" else fields[19]


def _start_without_proc(pid: int) -> str:
    """As `_start_of` on macOS, which has no /proc: it shows only whether the process exists."""
    if os.path.isdir("/proc/self"):
        return ENDED
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ENDED
    except PermissionError:
        return "0"
    return "0"
