"""Slow link: a link's bytes are delayed or rate-limited by its proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Evidence, LinkTarget, faults
from streamquake.faults.mechanisms.toxics import WATCH_S, StreamToxicFault
from streamquake.faults.requirement import Requirements, more_than
from streamquake.topologies.limits import Milliseconds, MillisecondsOrZero


@faults.register
class SlowLink(StreamToxicFault):
    """Delay a link's bytes, limit their rate, or both; both ways, or one."""

    name: ClassVar[str] = "slow_link"
    example: ClassVar[Mapping[str, Any]] = {"latency_ms": 200, "bandwidth_kb_per_s": 64}

    latency_ms: Milliseconds | None = None
    """Added delay of every chunk, milliseconds."""
    jitter_ms: MillisecondsOrZero = 0
    bandwidth_kb_per_s: Annotated[int, Field(gt=0, le=2**31 - 1)] | None = None
    """Rate limit of each connection and direction, kilobytes per second."""

    @model_validator(mode="after")
    def _slows_something(self) -> SlowLink:
        if self.latency_ms is None and self.bandwidth_kb_per_s is None:
            raise ValueError("slow_link needs `latency_ms`, `bandwidth_kb_per_s`, or both")
        return self

    def kinds(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, Mapping[str, int]] = {}
        if self.latency_ms is not None:
            found["latency"] = {"latency": self.latency_ms, "jitter": self.jitter_ms}
        if self.bandwidth_kb_per_s is not None:
            found["bandwidth"] = {"rate": self.bandwidth_kb_per_s}
        return found

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**super().effect_requires(before), "bytes_while_watched": more_than(0)}

    def evidence(
        self, cluster: Cluster, target: LinkTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when every path has its toxics and bytes of the link pass through them.

        An unused link cannot be slowed: without traffic there is no effect.
        """
        paths = target.paths
        before = cluster.links.bytes_passed(paths)
        cluster.clock.sleep(WATCH_S)
        passed = cluster.links.bytes_passed(paths) - before
        applied = self.in_place(cluster, target)
        return Evidence(
            in_effect=self.complete(applied) and passed > 0,
            healed=not any(applied.values()),
            in_place=self.complete(applied),
            observations={"toxics": applied, "bytes_while_watched": passed},
        )
