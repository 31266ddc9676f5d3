"""Clock skew: the node's time of day is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from streamquake.cluster.adjustable_clock import OFFSET
from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.mechanisms.resources import group_of, is_running, run_script_inside
from streamquake.faults.requirement import Requirements, at_least, at_most
from streamquake.topologies.limits import Finite
from streamquake.topologies.model import Topology

SET = f'printf "%s\\n" "$1" > {OFFSET}.new && mv {OFFSET}.new {OFFSET}'
CLEAR = f"rm -f {OFFSET} {OFFSET}.new"
READ_CLOCK = "date +%s%N"
TOLERANCE_S = 0.2
SMALLEST_S = 1.0
LARGEST_S = 10 * 365 * 86_400.0


def _in_bounds(offset_s: float) -> float:
    if abs(offset_s) < SMALLEST_S:
        raise ValueError(f"expected at least {SMALLEST_S:g} s ahead or behind, got {offset_s:g}")
    if abs(offset_s) > LARGEST_S:
        raise ValueError(f"expected at most {LARGEST_S:,.0f} s ahead or behind, got {offset_s:g}")
    return offset_s


@faults.register
class ClockSkew(NodeFault):
    """Set the node's time of day ahead of the host's time, or behind it.

    The monotonic clock, by which timeouts are measured, is unchanged. Running processes have the
    new time within a second. In effect when a process of the node reads the host's time plus
    `offset_s`. A restarted node has the host's time.
    """

    name: ClassVar[str] = "clock_skew"
    touches: ClassVar[str] = "clock"
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"offset_s": 90}

    offset_s: Annotated[Finite, AfterValidator(_in_bounds)]
    """Seconds ahead of the host's clock; negative is behind."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        if group_of(topology, role).clock == "adjustable":
            return None
        return f"the clock of {role} cannot be changed; give it `clock: adjustable` in the topology"

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        offset_s, within_s = _offset(cluster, target)
        return {"offset_s": offset_s, "within_s": within_s}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        run_script_inside(cluster, target, SET, f"{self.offset_s:+.3f}")
        return until_now(cluster, called_ns, "libfaketime")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        if not is_running(cluster, target):
            return Evidence(in_effect=False, healed=True, observations={"running": False})
        offset_s, now_within_s = _offset(cluster, target)
        change_s = offset_s - baseline.get("offset_s", 0.0)
        # The errors of both readings add up; half the offset keeps the two states apart.
        within_s = now_within_s + baseline.get("within_s", 0.0)
        tolerance_s = min(within_s, abs(self.offset_s) / 2)
        return Evidence(
            in_effect=abs(change_s - self.offset_s) <= tolerance_s,
            healed=abs(change_s) <= tolerance_s,
            observations={"offset_s": offset_s, "within_s": within_s},
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        half_way_s = self._half_way_s(before)
        return {"offset_s": at_least(half_way_s) if self.offset_s > 0 else at_most(half_way_s)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        half_way_s = self._half_way_s(before)
        return {"offset_s": at_most(half_way_s) if self.offset_s > 0 else at_least(half_way_s)}

    def _half_way_s(self, before: Mapping[str, Any]) -> float:
        """The offset half way from the former to the requested one, seconds."""
        return float(before.get("offset_s", 0.0)) + self.offset_s / 2

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if not is_running(cluster, target):
            return nothing_done(cluster)
        called_ns = cluster.clock.epoch_ns()
        run_script_inside(cluster, target, CLEAR)
        return until_now(cluster, called_ns, "libfaketime")


def _offset(cluster: Cluster, node: Node) -> tuple[float, float]:
    """How far the node's clock is ahead of the host's clock, and the largest error of that,
    seconds."""
    before_ns = cluster.clock.epoch_ns()
    reported_ns = int(run_script_inside(cluster, node, READ_CLOCK))
    after_ns = cluster.clock.epoch_ns()
    offset_s = (reported_ns - (before_ns + after_ns) / 2) / 1e9
    return round(offset_s, 3), round((after_ns - before_ns) / 2e9 + TOLERANCE_S, 3)
