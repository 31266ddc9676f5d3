"""The supervisor: starts nodes again that end by themselves, as production does.

A process may end for good reasons: a TaskManager that was frozen for longer than its heartbeat
finds its transactions fenced when it thaws, and Flink ends the process. Where Flink runs at scale
something starts it again; without that, a run would judge a cluster that nobody runs. What a fault
keeps down is left down. A node that keeps ending is given up, and the run says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus
from streamquake.harness.run.cluster_lease import worker
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action

LOOK_EVERY_S = 0.5
TIMES = 5
"""How often a node is started again before it is given up."""


class Supervisor:
    """Watches over the nodes of one run; `held` names those that a fault keeps down."""

    def __init__(
        self, cluster: Cluster, loop: EventLoop, held: Callable[[], Collection[str]]
    ) -> None:
        self._cluster = cluster
        self._loop = loop
        self._held = held
        self._times: dict[str, int] = {}
        cluster.run.supervised = {n.name for n in cluster.nodes.values() if n.spec.group.supervised}

    def poll(self) -> None:
        """Start every supervised node again that has ended by itself."""
        for name in sorted(self._cluster.run.supervised):
            node = self._cluster.node(name)
            state = self._cluster.state(node)
            # Who holds the node is asked after it was seen to have ended: a kill says so first.
            if state.status == ContainerStatus.EXITED and name not in self._held():
                self._revive(node, state.exit_code)

    def _revive(self, node: Node, exit_code: int | None) -> None:
        times = self._times[node.name] = self._times.get(node.name, 0) + 1
        if times > TIMES:
            self._cluster.run.supervised.discard(node.name)
            self._loop.record(
                Action.NODE_GIVEN_UP, node=node.name, exit_code=exit_code, times=times - 1
            )
            return
        try:
            self._cluster.start_again(node)
        except ContainerError as error:
            self._loop.record(Action.HARNESS_ERROR, part="supervisor", error=str(error))
            return
        self._loop.record(Action.NODE_REVIVED, node=node.name, exit_code=exit_code, times=times)


@contextmanager
def supervised(
    cluster: Cluster, loop: EventLoop, held: Callable[[], Collection[str]]
) -> Iterator[None]:
    """Supervise a cluster until the end of the block."""
    supervisor, stop = Supervisor(cluster, loop, held), threading.Event()

    def follow() -> None:
        while not stop.wait(LOOK_EVERY_S):
            supervisor.poll()

    with worker(follow, loop, "supervisor", stop.set):
        yield
