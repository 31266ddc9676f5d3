"""Kill: a signal ends the main process, by default at once and without cleanup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.mechanisms.processes import (
    KILLED,
    await_end,
    ended_evidence,
    process_baseline,
    runs_again,
    start_if_ended,
    stays_down,
)
from streamquake.faults.requirement import Requirements, one_of

ENDS_WITHIN_S = 3.0
"""How long inject waits for the end after a signal that a process may handle. The evidence still
observes a later end, with a less exact time."""


@faults.register
class Kill(NodeFault):
    """End the node's main process with a signal; heal starts the node again, with its volumes."""

    name: ClassVar[str] = "kill"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True

    signal: Literal["KILL", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV"] = "KILL"
    """The signal. In a container, the main process ignores every signal except KILL that it does
    not handle (pid_namespaces(7)); a signal that it survives is reported as not in effect."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        sent = cluster.runtime.kill(target.container, self.signal)
        if self.signal == "KILL":
            return sent
        await_end(cluster, target, ENDS_WITHIN_S)
        return until_now(cluster, sent.called_ns, sent.how)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while the main process has ended: its exit code is the evidence."""
        return ended_evidence(cluster.state(target), baseline, signal=self.signal)

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        killed: Requirements = {"exit_code": one_of(KILLED)} if self.signal == "KILL" else {}
        return {**stays_down(before), **killed, "signal": one_of(self.signal)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return start_if_ended(cluster, target)
