"""DNS failure: a node can no longer resolve the names of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, disturbed_party, faults
from streamquake.faults.mechanisms.netfilter import How, PacketRule, apply, count_anew, lift, poll
from streamquake.faults.mechanisms.network_cut import chain_of, in_place_everywhere
from streamquake.faults.mechanisms.resources import run_inside

NAME_SERVER = "127.0.0.11"
"""Where the container engine answers the name lookups of a container."""
SILENT_S = 1
"""How long a lookup waits when no answer is expected; an answer takes milliseconds."""
UNDISTURBED_S = 10
"""How long a lookup waits when an answer is expected, so that a busy machine is not taken for the
fault."""
FOUND, FAILED, TIMED_OUT, UNASKED = "found", "failed at once", "timed out", "node does not run"


@faults.register
class DnsFailure(NodeFault):
    """Stop a node's name lookups; its open connections stay open. Names that a process has cached
    (a JVM: for 30 s by default) still resolve."""

    name: ClassVar[str] = "dns_failure"
    touches: ClassVar[str] = "names"
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"how": "silent"}

    how: How = "silent"
    """silent: lookups fail by timeout only. reset: they fail at once."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return {"lookup": self._lookup(cluster, target, UNDISTURBED_S)}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        # A query dropped on its way out would fail at once, so the answers are dropped instead.
        way: Literal["in", "out"] = "in" if self.how == "silent" else "out"
        block = PacketRule(way=way, peer="the name server", address=NAME_SERVER)

        def in_place(container: str) -> None:
            apply(cluster.runtime, container, chain_of(self, target), [block], self.how)

        return in_place_everywhere(cluster, in_place, [target.container])

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when a lookup from inside, which succeeded before, fails in the expected way
        and the rule has counted its packets. Packets counted before that lookup were the node's
        own."""
        limit_s = SILENT_S if self.how == "silent" else UNDISTURBED_S
        chain = chain_of(self, target)
        own = poll(cluster.runtime, target.container, chain)
        lookup = self._lookup(cluster, target, limit_s)
        seen = poll(cluster.runtime, target.container, chain)
        count_anew(cluster.runtime, target.container, chain)
        wanted = TIMED_OUT if self.how == "silent" else FAILED
        before = baseline.get("lookup", FOUND)
        stopped = seen.stopped if seen is not None else 0
        applied = seen is not None and seen.in_place
        return Evidence(
            in_effect=applied and stopped > 0 and before == FOUND and lookup == wanted,
            healed=not applied and lookup in (FOUND, before, UNASKED),
            in_place=applied,
            observations={
                "lookup": lookup,
                "packets_stopped": stopped,
                "rules_laid": applied,
                **disturbed_party(applied, own is not None and own.stopped > 0),
            },
        )

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        def lifted(container: str) -> None:
            lift(cluster.runtime, container, chain_of(self, target))

        return in_place_everywhere(cluster, lifted, [target.container])

    def _lookup(self, cluster: Cluster, node: Node, limit_s: int) -> str:
        """The result of looking up another node's name from inside this one."""
        other = next(n for n in cluster.nodes.values() if n.name != node.name)
        argv = ["timeout", str(limit_s), "getent", "hosts", other.spec.host]
        try:
            done = run_inside(cluster, node, argv, timeout_s=limit_s + 5)
        except ContainerError:
            if cluster.state(node).status == ContainerStatus.RUNNING:
                raise
            return UNASKED
        if done.exit_code == 0:
            return FOUND
        return TIMED_OUT if done.exit_code in (124, 143) else FAILED
