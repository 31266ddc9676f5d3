"""Two containers of one node: the state during a replacement, or after an interrupted one.

The new container is created while the old one exists, under a temporary name, with the same labels.
So all containers of a node are found by label and removed with its run.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamquake.cluster.runtime.runtime import ContainerRuntime, ContainerStatus, FoundResource

MEANWHILE = "-next"
"""The suffix of the name of a new container until it has replaced the old one."""
ALIVE = (ContainerStatus.RUNNING, ContainerStatus.PAUSED, ContainerStatus.RESTARTING)


def best_first(runtime: ContainerRuntime, found: Iterable[FoundResource]) -> list[FoundResource]:
    """The containers of one node, the present one first. That is the running one (only one can run,
    since they share an address), or the older one if none runs."""
    duplicates = list(found)
    if len(duplicates) < 2:
        return duplicates
    return sorted(
        duplicates,
        key=lambda container: (
            runtime.inspect(container.id).status not in ALIVE,
            container.name.endswith(MEANWHILE),
        ),
    )
