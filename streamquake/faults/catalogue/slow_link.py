"""Slow link: a link's bytes come late or thinly, through its proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime import Bracket
from streamquake.cluster.toxiproxy import Toxiproxy
from streamquake.faults.fault import Aim, Evidence, Fault, Target, faults, link_of

WATCH_S = 0.25


@faults.register
class SlowLink(Fault):
    """Delay a link's bytes, limit their rate, or both, in both directions."""

    name: ClassVar[str] = "slow_link"
    aims: ClassVar[Aim] = "links"
    touches: ClassVar[str] = "link"
    example: ClassVar[Mapping[str, Any]] = {"latency_ms": 200, "bandwidth_kb_per_s": 64}

    latency_ms: Annotated[int, Field(gt=0)] | None = None
    """Added delay of every chunk, milliseconds."""
    jitter_ms: Annotated[int, Field(ge=0)] = 0
    bandwidth_kb_per_s: Annotated[int, Field(gt=0)] | None = None
    """Rate limit of each connection and direction, kilobytes per second."""

    @model_validator(mode="after")
    def _slows_something(self) -> SlowLink:
        if self.latency_ms is None and self.bandwidth_kb_per_s is None:
            raise ValueError("slow_link needs `latency_ms`, `bandwidth_kb_per_s`, or both")
        return self

    def inject(self, cluster: Cluster, target: Target) -> Bracket:
        proxy = _proxy(cluster)
        called_ns = cluster.clock.epoch_ns()
        for path in link_of(target).paths:
            for name, (kind, stream, attributes) in self._toxics().items():
                proxy.add_toxic(path.name, name, kind, stream, attributes)
        return Bracket(called_ns=called_ns, seen_ns=cluster.clock.epoch_ns(), how="toxiproxy")

    def evidence(self, cluster: Cluster, target: Target) -> Evidence:
        """In effect when every path has its toxics and bytes of the link pass through them.

        A link that nobody uses cannot be slowed: without traffic there is no effect.
        """
        proxy, paths, wanted = _proxy(cluster), link_of(target).paths, self._toxics()
        before = cluster.links.bytes_passed(paths)
        cluster.clock.sleep(WATCH_S)
        passed = cluster.links.bytes_passed(paths) - before
        toxics = {path.name: sorted(wanted.keys() & proxy.toxics(path.name)) for path in paths}
        complete = bool(paths) and all(len(found) == len(wanted) for found in toxics.values())
        return Evidence(
            in_effect=complete and passed > 0,
            gone=not any(toxics.values()),
            seen={"paths": len(paths), "toxics": toxics, "bytes_while_watched": passed},
        )

    def heal(self, cluster: Cluster, target: Target) -> Bracket:
        called_ns = cluster.clock.epoch_ns()
        for path in link_of(target).paths:
            for name in self._toxics():
                cluster.links.remove_toxic(path, name)
        return Bracket(called_ns=called_ns, seen_ns=cluster.clock.epoch_ns(), how="toxiproxy")

    def _toxics(self) -> dict[str, tuple[str, str, Mapping[str, int]]]:
        """Toxics by name -> kind, stream, attributes."""
        found: dict[str, tuple[str, str, Mapping[str, int]]] = {}
        for stream in ("upstream", "downstream"):
            if self.latency_ms is not None:
                delay = {"latency": self.latency_ms, "jitter": self.jitter_ms}
                found[f"latency_{stream}"] = ("latency", stream, delay)
            if self.bandwidth_kb_per_s is not None:
                rate = {"rate": self.bandwidth_kb_per_s}
                found[f"bandwidth_{stream}"] = ("bandwidth", stream, rate)
        return found


def _proxy(cluster: Cluster) -> Toxiproxy:
    if cluster.links.proxy is None:
        raise LookupError("the topology declares no links, so there is no proxy")
    return cluster.links.proxy
