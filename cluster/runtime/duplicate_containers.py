"""Two containers of one node: the state during a replacement, or after an interrupted one.

The new container is created beside the old one, under a temporary name, with the same labels; so
all containers of a node are found, and removed with its run, whatever happened to the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.cluster.runtime.runtime import ContainerRuntime, ContainerStatus, FoundResource

MEANWHILE = "-next"
"""Ends the name of a container that is to take another's place, until it has."""
ALIVE = (ContainerStatus.RUNNING, ContainerStatus.PAUSED, ContainerStatus.RESTARTING)


def best_first(runtime: ContainerRuntime, found: Iterable[FoundResource]) -> list[FoundResource]:
    """The containers of one node, its present one first: the one that runs (they share an address,
    so only one can), and if none does, the older one."""
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
