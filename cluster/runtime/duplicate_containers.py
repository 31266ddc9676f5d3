"""Two containers of one node: what is there in the midst of a replacement, or when it broke off.

The new container is created beside the old one, under a name for the meantime, and carries the
same labels; so all of a node is found, and removed with its run, whatever became of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.cluster.runtime.runtime import ContainerRuntime, ContainerStatus, FoundResource

MEANWHILE = "-next"
"""Ends the name of a container that is to take another's place, until it has."""
ALIVE = (ContainerStatus.RUNNING, ContainerStatus.PAUSED, ContainerStatus.RESTARTING)


def best_first(runtime: ContainerRuntime, found: Iterable[FoundResource]) -> list[FoundResource]:
    """The containers of one node, first the one that is the node: that which runs (they share an
    address, so only one can), and if none does, the one that was there before."""
    duplicates = list(found)
    if len(duplicates) < 2:
        return duplicates
    return sorted(
        duplicates,
        key=lambda one: (
            runtime.inspect(one.id).status not in ALIVE,
            one.name.endswith(MEANWHILE),
        ),
    )
