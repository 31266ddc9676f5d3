"""Kill: the main process ends at once, without a goodbye."""

from __future__ import annotations

from typing import ClassVar

from streamquake.cluster.cluster import Cluster, Node
from streamquake.cluster.runtime import Bracket, Status
from streamquake.faults.fault import Aim, Evidence, Fault, Target, faults, node_of


@faults.register
class Kill(Fault):
    """End the node's main process with SIGKILL; heal starts the node again, its volumes kept."""

    name: ClassVar[str] = "kill"
    aims: ClassVar[Aim] = "nodes"
    touches: ClassVar[str] = "process"

    def inject(self, cluster: Cluster, target: Target) -> Bracket:
        return cluster.runtime.kill(node_of(target).container)

    def evidence(self, cluster: Cluster, target: Target) -> Evidence:
        """In effect while the main process is gone: its exit code is the sign."""
        node: Node = node_of(target)
        state = cluster.state(node)
        gone = state.status in (Status.EXITED, Status.GONE)
        return Evidence(
            in_effect=gone,
            gone=state.status == Status.RUNNING,
            seen={"status": str(state.status), "exit_code": state.exit_code, "pid": state.pid},
        )

    def heal(self, cluster: Cluster, target: Target) -> Bracket:
        return cluster.start_again(node_of(target))
