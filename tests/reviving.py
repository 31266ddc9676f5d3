"""A cluster that comes back as deployments do: what ended by itself is started again.

Flink ends a TaskManager on purpose when a task cannot be closed, as when the coordinator has given
its sink's transactional id to the task's successor by then. A run has a supervisor for it; tests
that hold a cluster by hand wait with this.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus


def coming_back(cluster: Cluster, services: Iterable[str] | None = None) -> str | None:
    """Why the cluster is not ready, or None; every node that has ended is started again first.

    Only for moments at which nothing is to be down.
    """
    cluster.run.supervised = set(cluster.nodes)
    for node in list(cluster.nodes.values()):
        if cluster.state(node).status == ContainerStatus.EXITED:
            with suppress(ContainerError):  # it ended once more; the next look tries again
                cluster.start_again(node)
    return cluster.pending(services)
