"""Partition of a link: its packets are stopped, and nothing else between the same nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.links import LinkPath
from streamquake.faults.fault import LinkTarget, TargetKind, faults
from streamquake.faults.mechanisms.netfilter import TIMED_OUT, PacketRule
from streamquake.faults.mechanisms.network_cut import (
    ExpectedOutcome,
    NamespaceRules,
    NetworkCutFault,
)
from streamquake.faults.mechanisms.reachability import (
    ConnectionAttempt,
    attempts_of_link,
)
from streamquake.faults.mechanisms.toxics import Stream


@faults.register
class PartitionLink(NetworkCutFault[LinkTarget]):
    """Stop the packets of every connection of a link, where they enter or leave its proxy."""

    name: ClassVar[str] = "partition_link"
    target_kind: ClassVar[TargetKind] = "links"
    touches: ClassVar[str] = "link"
    usual: ClassVar[str] = "link sink"
    example: ClassVar[Mapping[str, Any]] = {"how": "silent"}
    other_outcomes: ClassVar[Set[str]] = frozenset({TIMED_OUT})

    stream: Stream = "both"
    """upstream: packets from the link's `from` nodes; downstream: packets back to them."""

    def rules(self, cluster: Cluster, target: LinkTarget) -> NamespaceRules:
        paths = target.paths
        return {
            cluster.links.proxy_container: [
                rule
                for path in paths
                if path.source in cluster.nodes
                for rule in self._path_rules(cluster, path)
            ]
        }

    def attempts(self, cluster: Cluster, target: LinkTarget) -> Iterable[ConnectionAttempt]:
        return attempts_of_link(cluster, target.paths)

    def expected(
        self, cluster: Cluster, target: LinkTarget, attempt: ConnectionAttempt
    ) -> ExpectedOutcome:
        return "unanswered" if self.stream == "downstream" else "stopped"

    def _path_rules(self, cluster: Cluster, path: LinkPath) -> Iterator[PacketRule]:
        """The rules of a path at the proxy, for packets from the source and packets back to it.

        If only packets back are stopped, those from the source are counted. In the other case there
        is nothing to count: without a connection no packet returns.
        """
        ip, port = cluster.ip_of(path.source), path.proxy_port
        incoming = PacketRule(direction="in", peer=path.name, address=ip, port=port, port_is="near")
        yield replace(incoming, passes=self.stream == "downstream")
        if self.stream != "upstream":
            yield replace(incoming, direction="out")
