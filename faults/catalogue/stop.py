"""Stop: the node gets TERM, as in an orderly shutdown, and KILL if it does not end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.processes import (
    KILLED,
    end_gracefully,
    ended_evidence,
    process_baseline,
    runs_again,
    start_if_ended,
    stays_down,
)
from streamquake.faults.requirement import Requirements, at_least, some
from streamquake.topologies.limits import Limit


@faults.register
class Stop(NodeFault):
    """Stop the node with TERM, and with KILL after a grace period; heal starts it again."""

    name: ClassVar[str] = "stop"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"grace_s": 10}

    grace_s: Limit = 10.0
    """Seconds between TERM and KILL."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        return end_gracefully(cluster, target, self.grace_s)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while the main process has ended; its exit code shows which signal ended it."""
        state = cluster.state(target)
        return ended_evidence(state, baseline, ended_by=_ended_by(state.exit_code))

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**stays_down(before), "exit_code": at_least(0), "ended_by": some()}

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from super().contradicted_effect(observations, before)
        code, ended_by = observations.get("exit_code"), observations.get("ended_by")
        if ended_by != _ended_by(code):
            yield f"ended_by: expected {_ended_by(code)} with exit code {code}, got {ended_by}"

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return runs_again(before)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return start_if_ended(cluster, target)


def _ended_by(exit_code: int | None) -> str | None:
    if exit_code is None:
        return None
    return "KILL, after the grace" if exit_code == KILLED else "TERM"
