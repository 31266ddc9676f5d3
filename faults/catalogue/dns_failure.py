"""DNS failure: a node can no longer resolve the names of the other nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, disturbed_party, faults
from streamquake.faults.mechanisms.netfilter import (
    How,
    PacketRule,
    add_chain,
    poll,
    remove_chain,
    reset_counters,
)
from streamquake.faults.mechanisms.network_cut import chain_of, run_in_namespaces
from streamquake.faults.mechanisms.resources import run_inside
from streamquake.faults.requirement import Requirements, has, more_than, one_of

NAME_SERVER = "127.0.0.11"
"""Where the container engine answers the name lookups of a container."""
SILENT_S = 1
"""How long a lookup waits when no answer is expected; an answer takes milliseconds."""
UNDISTURBED_S = 10
"""How long a lookup waits when an answer is expected, so that a slow answer of a busy machine does
not count as a failure."""
FOUND, FAILED, TIMED_OUT, NOT_RUNNING = "found", "failed at once", "timed out", "node does not run"


@faults.register
class DnsFailure(NodeFault):
    """Stop a node's name lookups; its open connections stay open. Names that a process has cached
    (a JVM: for 30 s by default) still resolve."""

    name: ClassVar[str] = "dns_failure"
    touches: ClassVar[str] = "names"
    shows_in_place: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"how": "silent"}

    how: How = "silent"
    """silent: lookups fail by timeout only. reset: they fail at once."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return {"lookup": self._lookup(cluster, target, UNDISTURBED_S)}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        # A query dropped on its way out would fail at once, so the answers are dropped instead.
        direction: Literal["in", "out"] = "in" if self.how == "silent" else "out"
        rule = PacketRule(direction=direction, peer="the name server", address=NAME_SERVER)

        def add(container: str) -> None:
            add_chain(cluster.runtime, container, chain_of(self, target), [rule], self.how)

        return run_in_namespaces(cluster, add, [target.sandbox])

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when a lookup from inside, which succeeded before, fails in the expected way
        and the rule has counted its packets. Packets counted before that lookup were the node's
        own."""
        limit_s = SILENT_S if self.how == "silent" else UNDISTURBED_S
        chain = chain_of(self, target)
        before_lookup = poll(cluster.runtime, target.sandbox, chain)
        lookup = self._lookup(cluster, target, limit_s)
        after_lookup = poll(cluster.runtime, target.sandbox, chain)
        reset_counters(cluster.runtime, target.sandbox, chain)
        expected, before = self._expected_lookup(), baseline.get("lookup", FOUND)
        stopped = after_lookup.stopped if after_lookup is not None else 0
        applied = after_lookup is not None and after_lookup.in_place
        return Evidence(
            in_effect=applied and stopped > 0 and before == FOUND and lookup == expected,
            healed=not applied and lookup in (FOUND, before, NOT_RUNNING),
            in_place=applied,
            observations={
                "lookup": lookup,
                "packets_stopped": stopped,
                "rules_laid": applied,
                **disturbed_party(applied, before_lookup is not None and before_lookup.stopped > 0),
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "lookup": one_of(self._expected_lookup()),
            "packets_stopped": more_than(0),
            "rules_laid": one_of(True),
            "before": has(lookup=one_of(FOUND, None)),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "lookup": one_of(FOUND, NOT_RUNNING, before.get("lookup")),
            "rules_laid": one_of(False),
        }

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        def remove(container: str) -> None:
            remove_chain(cluster.runtime, container, chain_of(self, target))

        return run_in_namespaces(cluster, remove, [target.sandbox])

    def _expected_lookup(self) -> str:
        """The result of a lookup while the fault is in effect."""
        return TIMED_OUT if self.how == "silent" else FAILED

    def _lookup(self, cluster: Cluster, node: Node, limit_s: int) -> str:
        """The result of looking up another node's name from inside this one."""
        other = next(n for n in cluster.nodes.values() if n.name != node.name)
        argv = ["timeout", str(limit_s), "getent", "hosts", other.spec.host]
        try:
            done = run_inside(cluster, node, argv, timeout_s=limit_s + 5)
        except ContainerError:
            if cluster.state(node).status == ContainerStatus.RUNNING:
                raise
            return NOT_RUNNING
        if done.exit_code == 0:
            return FOUND
        return TIMED_OUT if done.exit_code in (124, 143) else FAILED
