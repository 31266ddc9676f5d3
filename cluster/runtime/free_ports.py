"""Free ports of this host's loopback."""

from __future__ import annotations

import random
import socket

from streamquake.cluster.runtime.runtime import PortTaken

FIRST, LAST = 20_000, 32_000
"""Below the kernel's usual ephemeral range: an outgoing connection could take a port of that range
before the container does."""


def free_port() -> int:
    """A loopback port that is free now; another process may take it before it is published."""
    for _ in range(50):
        port = random.randint(FIRST, LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise PortTaken(f"no free port found on 127.0.0.1 between {FIRST} and {LAST}")
