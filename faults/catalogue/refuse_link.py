"""Refused link: open connections stay open, new ones are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import LinkTarget, TargetKind, faults
from streamquake.faults.mechanisms.netfilter import PacketRule
from streamquake.faults.mechanisms.network_cut import NamespaceRules, NetworkCutFault
from streamquake.faults.mechanisms.reachability import ConnectionAttempt, attempts_of_link


@faults.register
class RefuseLink(NetworkCutFault[LinkTarget]):
    """Refuse every attempt to open a connection of the link, as if no process listened at its far
    end; open connections are unchanged."""

    name: ClassVar[str] = "refuse_link"
    target_kind: ClassVar[TargetKind] = "links"
    touches: ClassVar[str] = "link"
    usual: ClassVar[str] = "link source"

    how: Literal["reset"] = "reset"

    def rules(self, cluster: Cluster, target: LinkTarget) -> NamespaceRules:
        return {
            cluster.links.proxy_container: [
                PacketRule(
                    direction="in",
                    peer=path.name,
                    address=cluster.ip_of(path.source),
                    port=path.proxy_port,
                    port_is="near",
                    opening=True,
                )
                for path in target.paths
            ]
        }

    def attempts(self, cluster: Cluster, target: LinkTarget) -> Iterable[ConnectionAttempt]:
        return attempts_of_link(cluster, target.paths)
