"""Common base of all faults that act on a link through Toxiproxy.

https://github.com/Shopify/toxiproxy#toxics
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, ClassVar, Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.links import paths_of
from streamquake.cluster.links.toxiproxy import Toxiproxy
from streamquake.cluster.links.traffic import ConnectionCounters, Direction, traffic_of
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import LinkFault, LinkTarget
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.requirement import Requirements, each, one_of
from streamquake.topologies.model import Topology

Stream = Literal["both", "upstream", "downstream"]
"""The direction on a link: upstream from its `from` nodes, downstream back to them."""

WATCH_S = 0.25
"""How long each poll observes the traffic, seconds."""


class ToxicFault(LinkFault):
    """The base of faults that add toxics to every path of a link."""

    def kinds(self) -> Mapping[str, Mapping[str, int]]:
        """Kind of toxic -> its attributes."""
        raise NotImplementedError

    def directions(self) -> tuple[Direction, ...]:
        return ("upstream", "downstream")

    def inject(self, cluster: Cluster, target: LinkTarget) -> InjectionTimes:
        proxy = proxy_of(cluster)
        called_ns = cluster.clock.epoch_ns()
        for path in target.paths:
            for name, kind, direction in self._toxics():
                proxy.add_toxic(path.name, name, kind, direction, self.kinds()[kind])
        return until_now(cluster, called_ns, "toxiproxy")

    def heal(
        self, cluster: Cluster, target: LinkTarget, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        recreated = [
            path.name
            for path in target.paths
            for name, _, _ in self._toxics()
            if cluster.links.remove_toxic(path, name)
        ]
        how = (
            f"toxiproxy, recreated: {', '.join(dict.fromkeys(recreated))}"
            if recreated
            else "toxiproxy"
        )
        return until_now(cluster, called_ns, how)

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"toxics": each(one_of(sorted(name for name, _, _ in self._toxics())))}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"toxics": each(one_of([]))}

    def observed_parts(self, topology: Topology, target: str) -> Mapping[str, Set[str]]:
        return {"toxics": {path.name for path in paths_of(topology) if path.link == target}}

    def in_place(self, cluster: Cluster, target: LinkTarget) -> Mapping[str, list[str]]:
        """Path -> the fault's toxics that its proxy has."""
        proxy, names = proxy_of(cluster), {name for name, _, _ in self._toxics()}
        paths = target.paths
        return {path.name: sorted(names & proxy.toxics(path.name).keys()) for path in paths}

    def complete(self, in_place: Mapping[str, list[str]]) -> bool:
        """Whether every path has all toxics of the fault."""
        expected = len(list(self._toxics()))
        return bool(in_place) and all(len(found) == expected for found in in_place.values())

    def observe_traffic(
        self, cluster: Cluster, target: LinkTarget
    ) -> Mapping[Direction, ConnectionCounters]:
        """The traffic on the link during `WATCH_S`, in each disturbed direction."""
        paths = target.paths
        before = traffic_of(cluster.links, paths)
        cluster.clock.sleep(WATCH_S)
        after = traffic_of(cluster.links, paths)
        return {direction: after.since(before, direction) for direction in self.directions()}

    def _toxics(self) -> Iterator[tuple[str, str, Direction]]:
        """Name, kind and direction of each toxic. The heal finds it by its name."""
        for direction in self.directions():
            for kind in self.kinds():
                yield f"{self.name}-{kind}-{direction}", kind, direction


class StreamToxicFault(ToxicFault):
    """The base of toxic faults that can be limited to one direction of the link."""

    shows_in_place: ClassVar[bool] = True

    stream: Stream = "both"

    def directions(self) -> tuple[Direction, ...]:
        return ("upstream", "downstream") if self.stream == "both" else (self.stream,)


def proxy_of(cluster: Cluster) -> Toxiproxy:
    """The server of the links' proxies. Raises LookupError without links."""
    if cluster.links.proxy is None:
        raise LookupError("the topology declares no links, so there is no proxy")
    return cluster.links.proxy
