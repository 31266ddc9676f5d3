"""A clock that can be moved while the node runs, for groups with `clock: adjustable`.

libfaketime (https://github.com/wolfcw/libfaketime) is preloaded into every process of the node and
adds the offset that it reads from a file to the system's time of day. The monotonic clock, by which
programs measure durations, is unchanged. The file is stored in memory and is lost when the node
stops: a restarted node has the host's time.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.topologies.model import NodeGroup

OFFSET = "/dev/shm/streamquake-clock-offset"
"""On the memory file system of every container, where any user may write."""
FOLLOWS_WITHIN_S = 1
"""How long a process caches the offset; reading it each time would cost far more."""
ENV = {
    "LD_PRELOAD": "/usr/$LIB/faketime/libfaketimeMT.so.1",  # the loader knows what $LIB is
    "FAKETIME_TIMESTAMP_FILE": OFFSET,
    "FAKETIME_CACHE_DURATION": str(FOLLOWS_WITHIN_S),
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_FORCE_MONOTONIC_FIX": "0",
}
"""Without the last entry, waits on the monotonic clock end at once with some C libraries, such as
glibc 2.36, and a JVM spins."""


def clock_env(group: NodeGroup) -> Mapping[str, str]:
    """The environment variables that a node of the group needs."""
    return ENV if group.clock == "adjustable" else {}
