"""Reset link: connections are reset as soon as data is sent on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.traffic import traffic_of
from streamquake.faults.fault import Evidence, LinkTarget, disturbed_party, faults
from streamquake.faults.mechanisms.reachability import attempts_of_link, hold_connections
from streamquake.faults.mechanisms.toxics import ToxicFault


@faults.register
class ResetLink(ToxicFault):
    """Reset every connection of the link, open or new, as soon as a byte is sent on it."""

    name: ClassVar[str] = "reset_link"
    lasts: ClassVar[bool] = False

    def kinds(self) -> Mapping[str, Mapping[str, int]]:
        return {"reset_peer": {"timeout": 0}}

    def baseline(self, cluster: Cluster, target: LinkTarget) -> Mapping[str, Any]:
        """The result of a new connection on which nothing is sent, and which connections are
        open."""
        paths = target.paths
        outcomes = hold_connections(cluster, attempts_of_link(cluster, paths), sends="")
        return {"new": outcomes, "open": sorted(traffic_of(cluster.links, paths).sources)}

    def evidence(
        self, cluster: Cluster, target: LinkTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when a new connection of every path is reset by its first byte, where it stayed
        open before. The byte is sent only while the toxic is in place, so that no system receives
        it."""
        applied, paths = self.in_place(cluster, target), target.paths
        sends = "x" if self.complete(applied) else ""
        outcomes = hold_connections(cluster, attempts_of_link(cluster, paths), sends=sends)
        before, now_open = baseline.get("new", {}), traffic_of(cluster.links, paths).sources
        compared = [
            outcome for name, outcome in outcomes.items() if before.get(name, "open") == "open"
        ]
        were_open = baseline.get("open", [])
        closed = sum(peer not in now_open for peer in were_open)
        return Evidence(
            in_effect=bool(sends and compared) and set(compared) == {"reset"},
            healed=not any(applied.values()),
            observations={
                "toxics": applied,
                "new": outcomes,
                "closed_since": f"{closed} of {len(were_open)} connections open before",
                **disturbed_party(any(applied.values()), closed > 0),
            },
        )
