"""Stalled link: connections stay open, but deliver no data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import Evidence, LinkTarget, faults
from streamquake.faults.mechanisms.toxics import StreamToxicFault
from streamquake.faults.requirement import (
    Requirements,
    any_of,
    at_least,
    each,
    has,
    more_than,
    one_of,
)


@faults.register
class StallLink(StreamToxicFault):
    """Discard a link's bytes while its connections stay open and new ones are accepted.

    The discarded bytes are lost to these connections, so healing closes them: both ends open new
    ones.
    """

    name: ClassVar[str] = "stall_link"
    example: ClassVar[Mapping[str, Any]] = {"stream": "both"}

    def kinds(self) -> Mapping[str, Mapping[str, int]]:
        return {"timeout": {"timeout": 0}}

    def baseline(self, cluster: Cluster, target: LinkTarget) -> Mapping[str, Any]:
        traffic = self.observe_traffic(cluster, target)
        return {
            "bytes_delivered": {
                direction: counters.delivered for direction, counters in traffic.items()
            }
        }

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            **super().effect_requires(before),
            "bytes_delivered": each(one_of(0)),
            "bytes_given": each(at_least(0)),
            "before": has(bytes_delivered=each(at_least(0))),
        }

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from super().contradicted_effect(observations, before)
        given, earlier = observations.get("bytes_given"), before.get("bytes_delivered")
        used = any(any_of(more_than(0)).is_met(found) for found in (given, earlier))
        if not used:
            yield f"an unused link is not stalled: bytes_given {given}, and {earlier} before"

    def evidence(
        self, cluster: Cluster, target: LinkTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when nothing more is delivered on a link that delivered before, or that
        receives bytes to deliver. An unused link is not stalled."""
        traffic, applied = self.observe_traffic(cluster, target), self.in_place(cluster, target)
        delivered = {direction: counters.delivered for direction, counters in traffic.items()}
        received = {direction: counters.received for direction, counters in traffic.items()}
        used = sum(received.values()) + sum(baseline.get("bytes_delivered", {}).values()) > 0
        return Evidence(
            in_effect=self.complete(applied) and used and not any(delivered.values()),
            healed=not any(applied.values()),
            in_place=self.complete(applied),
            observations={"toxics": applied, "bytes_delivered": delivered, "bytes_given": received},
        )
