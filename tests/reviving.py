"""Restarts nodes of a cluster that ended on their own, as the supervisor of a deployment does.

Flink ends a TaskManager on purpose when it cannot close a task, for example if the transaction
coordinator already gave the transactional id of its sink to the task's successor. A run has a
supervisor for this; tests without a run use this function.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus


def restart_ended_nodes(cluster: Cluster, services: Iterable[str] | None = None) -> str | None:
    """Restart every node that ended. Returns why the cluster is not ready, or None.

    Only for use while no node is down on purpose.
    """
    cluster.run.supervised = set(cluster.nodes)
    for node in list(cluster.nodes.values()):
        if cluster.state(node).status == ContainerStatus.EXITED:
            with suppress(ContainerError):  # it ended again; the next poll retries
                cluster.start_again(node)
    return cluster.pending(services)
