"""Two containers of one node: what is there in the midst of a replacement, or when it broke off.

The new container is created beside the old one, under a name for the meantime, and carries the
same labels; so all of a node is found, and removed with its run, whatever became of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.cluster.runtime.runtime import ContainerRuntime, Found, Status

MEANWHILE = "-next"
"""Ends the name of a container that is to take another's place, until it has."""
ALIVE = (Status.RUNNING, Status.PAUSED, Status.RESTARTING)


def best_first(runtime: ContainerRuntime, found: Iterable[Found]) -> list[Found]:
    """The containers of one node, first the one that is the node: that which runs (they share an
    address, so only one can), and if none does, the one that was there before."""
    twins = list(found)
    if len(twins) < 2:
        return twins
    return sorted(
        twins,
        key=lambda one: (
            runtime.inspect(one.id).status not in ALIVE,
            one.name.endswith(MEANWHILE),
        ),
    )
