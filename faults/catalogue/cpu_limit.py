"""CPU limit: the node gets fewer processors than its work needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes, Usage
from streamquake.faults.fault import (
    Evidence,
    NodeFault,
    disturbed_party,
    faults,
)
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.mechanisms.resources import is_removed, is_running, run_script_inside
from streamquake.faults.requirement import (
    Requirement,
    Requirements,
    has,
    is_number,
    more_than,
    one_of,
    other_than,
)
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM

BUSY = (
    'for loop in $(seq "$1"); do timeout 0.4 sh -c "while :; do :; done" & done; wait 2>/dev/null;'
    " true"
)
"""Uses $1 processors for 0.4 s, four scheduling periods."""
WATCH_S = 0.2
"""How long a node is observed before the probe adds load, two scheduling periods."""
EXACT = 0.005
"""The kernel stores limits in microseconds of each period."""


@faults.register
class CpuLimit(NodeFault):
    """Give the node at most `cpus` processors; a restart does not remove the limit, only heal does.

    In effect when the kernel has the limit and throttles processes of the node because of it
    (`nr_throttled` of `cpu.stat` grows while it is observed; kernel.org, sched-bwc). If the node is
    idle for 0.2 s, a probe uses more than its share for 0.4 s, and the evidence records that.
    """

    name: ClassVar[str] = "cpu_limit"
    touches: ClassVar[str] = "cpu"
    shows_in_place: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"cpus": 0.2}

    cpus: Annotated[float, Field(ge=0.01, allow_inf_nan=False)]
    """Processors that the node may use; 0.2 is a fifth of one. Below the group's own `cpus`."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        usage = cluster.runtime.usage(target.container)
        return {"cpus": usage.cpus, "throttled_ms": usage.throttled_ms}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        own = target.spec.group.cpus
        if own is not None and self.cpus >= own:
            raise ValueError(
                f"cpu_limit on {target.name}: expected fewer processors than its own {own:g}, got "
                f"`cpus: {self.cpus:g}`; give a smaller number"
            )
        return cluster.runtime.limit_cpus(target.container, self.cpus)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        before = cluster.runtime.usage(target.container)
        applied = _is_same_limit(before.cpus, self.cpus)
        after, system_throttled = (
            self._observe_usage(cluster, target, before) if applied else (before, False)
        )
        return Evidence(
            in_effect=applied and after.throttled > before.throttled,
            healed=_is_same_limit(before.cpus, target.spec.group.cpus)
            or is_removed(cluster, target),
            in_place=applied,
            observations={
                "cpus": before.cpus,
                "throttled_while_watched": after.throttled - before.throttled,
                "throttled_ms": after.throttled_ms,
                **disturbed_party(applied, system_throttled),
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        limit = Requirement(expected=f"{self.cpus:g}", is_met=self._is_limit)
        own = Requirement(
            expected=f"none, or more than {self.cpus:g}",
            is_met=lambda found: found is None or more_than(self.cpus + EXACT).is_met(found),
        )
        return {
            "cpus": limit,
            "throttled_while_watched": more_than(0),
            "throttled_ms": more_than(0),
            DISTURBED: one_of(SYSTEM, PROBE_ALONE),
            **({"before": has(cpus=own)} if "cpus" in before else {}),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"cpus": one_of(before["cpus"], None) if "cpus" in before else other_than(self.cpus)}

    def _is_limit(self, found: Any) -> bool:
        return is_number(found) and _is_same_limit(found, self.cpus)

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if is_removed(cluster, target):
            return nothing_done(cluster)
        return cluster.runtime.limit_cpus(target.container, target.spec.group.cpus)

    def _observe_usage(self, cluster: Cluster, node: Node, before: Usage) -> tuple[Usage, bool]:
        """The usage after `WATCH_S`, or after the probe's load, and whether the node's own work was
        throttled."""
        if not is_running(cluster, node):
            return before, False
        cluster.clock.sleep(WATCH_S)
        after = cluster.runtime.usage(node.container)
        if after.throttled > before.throttled:
            return after, True
        run_script_inside(cluster, node, BUSY, math.floor(self.cpus) + 1)
        return cluster.runtime.usage(node.container), False


def _is_same_limit(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, abs_tol=EXACT)
