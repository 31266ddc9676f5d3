"""Sliced link: bytes arrive in small pieces, so that readers receive every record in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.links.traffic import ConnectionCounters
from streamquake.faults.fault import Evidence, LinkTarget, faults
from streamquake.faults.mechanisms.toxics import StreamToxicFault


@faults.register
class SliceLink(StreamToxicFault):
    """Split the bytes of a link into small TCP segments, with a pause between them."""

    name: ClassVar[str] = "slice_link"
    example: ClassVar[Mapping[str, Any]] = {"average_bytes": 32}

    average_bytes: Annotated[int, Field(ge=8, le=2**31 - 1)] = 64
    """Average size of a slice."""
    variation_bytes: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """How much larger or smaller a slice may be."""
    delay_us: Annotated[int, Field(ge=0, le=2**31 - 1)] = 10
    """Pause between two slices, microseconds."""

    @model_validator(mode="after")
    def _varies_below_average(self) -> SliceLink:
        if self.variation_bytes >= self.average_bytes:
            raise ValueError(
                f"`variation_bytes` must be less than `average_bytes` ({self.average_bytes}), "
                f"got {self.variation_bytes}"
            )
        return self

    def kinds(self) -> Mapping[str, Mapping[str, int]]:
        size = {"average_size": self.average_bytes, "size_variation": self.variation_bytes}
        return {"slicer": {**size, "delay": self.delay_us}}

    def baseline(self, cluster: Cluster, target: LinkTarget) -> Mapping[str, Any]:
        traffic = self.observe_traffic(cluster, target)
        return {
            "bytes_per_segment": {
                direction: _mean(counters) for direction, counters in traffic.items()
            }
        }

    def evidence(
        self, cluster: Cluster, target: LinkTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when the segments of a link in use are no larger than a slice, and smaller than
        before where they were larger."""
        traffic, applied = self.observe_traffic(cluster, target), self.in_place(cluster, target)
        means = {direction: _mean(counters) for direction, counters in traffic.items()}
        before = baseline.get("bytes_per_segment", {})
        largest = self.average_bytes + self.variation_bytes
        used = {direction: mean for direction, mean in means.items() if mean is not None}
        smaller = [mean <= largest for mean in used.values()]
        larger_before = [(before.get(direction) or largest + 1) > largest for direction in used]
        return Evidence(
            in_effect=self.complete(applied) and all(smaller) and any(larger_before),
            healed=not any(applied.values()),
            in_place=self.complete(applied),
            observations={"toxics": applied, "bytes_per_segment": means},
        )


def _mean(counters: ConnectionCounters) -> float | None:
    """Mean bytes of a segment; None when none was sent."""
    return round(counters.sent / counters.segments, 1) if counters.segments else None
