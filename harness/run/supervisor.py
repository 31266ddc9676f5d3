"""The supervisor: restarts nodes that exit by themselves, as production does.

A process may exit as designed: a TaskManager that was paused for longer than its heartbeat finds
its transactions fenced when it resumes, and Flink ends it. In production a supervisor restarts it;
without one, a run would judge an unrealistic setup. A node that a fault keeps down is not
restarted. A node that exits too often is given up, and this is recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus
from streamquake.cluster.sandbox import has_lost_network
from streamquake.harness.run.cluster_lease import background_thread
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action

POLL_EVERY_S = 0.5
MAX_RESTARTS = 5
"""A node that exits after this many restarts is given up."""


class Supervisor:
    """Restarts the nodes of one run; `kept_down` returns those that a fault keeps down."""

    def __init__(
        self, cluster: Cluster, loop: EventLoop, kept_down: Callable[[], Collection[str]]
    ) -> None:
        self._cluster = cluster
        self._loop = loop
        self._kept_down = kept_down
        self._restarts: dict[str, int] = {}
        cluster.run.supervised = {n.name for n in cluster.nodes.values() if n.spec.group.supervised}

    def poll(self) -> None:
        """Restart every supervised node that has exited by itself, or has lost its network."""
        # `kept_down` is read before and after the state: a fault registers before it kills a node,
        # and a node that it has just started again must not be killed for its earlier state.
        kept_down = set(self._kept_down())
        for name in sorted(self._cluster.run.supervised):
            node = self._cluster.node(name)
            state = self._cluster.state(node)
            exited = state.status == ContainerStatus.EXITED
            if not exited and not has_lost_network(self._cluster, node, state):
                continue
            if name not in kept_down and name not in self._kept_down():
                self._restart(node, state.exit_code, lost_network=not exited)

    def _restart(self, node: Node, exit_code: int | None, *, lost_network: bool) -> None:
        restarts = self._restarts[node.name] = self._restarts.get(node.name, 0) + 1
        if restarts > MAX_RESTARTS:
            self._cluster.run.supervised.discard(node.name)
            self._loop.record(
                Action.NODE_GIVEN_UP, node=node.name, exit_code=exit_code, times=restarts - 1
            )
            return
        try:
            if lost_network:
                self._cluster.runtime.kill(node.container)
            self._cluster.start_again(node)
        except ContainerError as error:
            self._loop.record(Action.HARNESS_ERROR, part="supervisor", error=str(error))
            return
        self._loop.record(
            Action.NODE_REVIVED,
            node=node.name,
            exit_code=exit_code,
            times=restarts,
            lost_network=lost_network,
        )


@contextmanager
def supervise(
    cluster: Cluster, loop: EventLoop, kept_down: Callable[[], Collection[str]]
) -> Iterator[None]:
    """Supervise a cluster in a background thread until the end of the block."""
    supervisor, stop = Supervisor(cluster, loop, kept_down), threading.Event()

    def follow() -> None:
        while not stop.wait(POLL_EVERY_S):
            supervisor.poll()

    with background_thread(follow, loop, "supervisor", stop.set):
        yield
