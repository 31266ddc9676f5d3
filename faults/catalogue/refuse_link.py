"""Refused link: connections that are open live on, new ones are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Aim, LinkTarget, faults
from streamquake.faults.mechanisms.netfilter import Block
from streamquake.faults.mechanisms.network_cut import Blocks, Cut
from streamquake.faults.mechanisms.reachability import Attempt, attempts_of_link


@faults.register
class RefuseLink(Cut[LinkTarget]):
    """Answer every attempt to open a connection of the link with a refusal, as when nobody
    listens at its far end; open connections are left alone."""

    name: ClassVar[str] = "refuse_link"
    aims: ClassVar[Aim] = "links"
    touches: ClassVar[str] = "link"
    usual: ClassVar[str] = "link source"

    how: Literal["reset"] = "reset"

    def blocks(self, cluster: Cluster, target: LinkTarget) -> Blocks:
        return {
            cluster.links.proxy_container: [
                Block(
                    way="in", peer=path.name, address=cluster.ip_of(path.source),
                    port=path.proxy_port, port_is="near", opening=True,
                )
                for path in target.paths
            ]
        }  # fmt: skip

    def attempts(self, cluster: Cluster, target: LinkTarget) -> Iterable[Attempt]:
        return attempts_of_link(cluster, target.paths)
