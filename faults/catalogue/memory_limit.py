"""Memory limit: the node can use hardly more memory than it already uses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes, Usage
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.mechanisms.resources import PROBE, is_removed, is_running, run_script_inside
from streamquake.faults.requirement import Requirements, less_than, one_of
from streamquake.topologies.limits import LARGEST_MB

CACHE = f'dd if=/dev/zero of=/tmp/{PROBE} bs=1M count="$1" 2>/dev/null'
"""Writes $1 MB, which the kernel caches in memory and can drop at once."""
DROP = f"rm -f /tmp/{PROBE}"
MOST_MB = 512
SPARE_MB = 8
"""How far beyond the limit the probe goes."""


@faults.register
class MemoryLimit(NodeFault):
    """Lower the node's memory limit; a restart does not remove it, only heal does.

    Near the limit the kernel reclaims page cache, so that every read becomes slow, and finally
    kills a process. In effect when the limit is below the node's own and is enforced: the probe
    writes a temporary file that would exceed the limit, and the node's memory use stays within it
    (kernel.org, cgroup-v1/memory and cgroup-v2). Also in effect when the node was killed for lack
    of memory.
    """

    name: ClassVar[str] = "memory_limit"
    touches: ClassVar[str] = "memory"
    shows_in_place: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    takes_memory: ClassVar[bool] = True
    ends_repeatedly: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"headroom_mb": 64}

    memory_mb: Annotated[int, Field(ge=16, le=LARGEST_MB)] | None = None
    """The new limit, megabytes; either this or `headroom_mb`."""
    headroom_mb: Annotated[int, Field(ge=1, le=LARGEST_MB)] | None = None
    """How much more memory the node may use than at the injection, without page cache,
    megabytes."""

    @model_validator(mode="after")
    def _one_limit(self) -> MemoryLimit:
        if (self.memory_mb is None) == (self.headroom_mb is None):
            raise ValueError("memory_limit needs either `memory_mb` or `headroom_mb`")
        return self

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        usage = cluster.runtime.usage(target.container)
        return {"memory_limit_bytes": usage.memory_limit_bytes, "memory_bytes": usage.memory_bytes}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        usage = cluster.runtime.usage(target.container)
        new_limit = self._new_limit(usage)
        if usage.memory_limit_bytes is None or new_limit >= usage.memory_limit_bytes:
            has = (usage.memory_limit_bytes or 0) >> 20
            raise ValueError(
                f"memory_limit on {target.name}: expected less than its own limit of "
                f"{f'{has} MB' if has else 'no bytes, there is none'}, got {new_limit >> 20} MB; "
                "give a smaller one, or give its group more `memory_mb`"
            )
        return cluster.runtime.limit_memory(target.container, new_limit)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        own = _own_limit(target, baseline)
        before = cluster.runtime.usage(target.container)
        limit = before.memory_limit_bytes
        applied = limit is not None and own is not None and limit < own
        after, written_bytes = _probe_usage(cluster, target, before) if applied else (before, 0)
        state = cluster.state(target)
        killed = state.status == ContainerStatus.EXITED and state.oom_killed
        limit_held = after.memory_bytes <= (limit or 0) < before.memory_bytes + written_bytes
        return Evidence(
            in_effect=applied and (killed or limit_held),
            healed=not applied or state.status == ContainerStatus.GONE,
            in_place=applied,
            observations={
                "memory_limit_bytes": limit,
                "memory_bytes": before.memory_bytes,
                "written_bytes": written_bytes,
                "memory_bytes_then": after.memory_bytes,
                "killed_for_memory": killed,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"memory_limit_bytes": less_than(before.get("memory_limit_bytes") or math.inf)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        own = before.get("memory_limit_bytes")
        return {} if own is None else {"memory_limit_bytes": one_of(own, None)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        own = _own_limit(target, baseline)
        if own is None or is_removed(cluster, target):
            return nothing_done(cluster)
        return cluster.runtime.limit_memory(target.container, own)

    def _new_limit(self, usage: Usage) -> int:
        if self.memory_mb is not None:
            return self.memory_mb << 20
        return usage.working_bytes + ((self.headroom_mb or 0) << 20)


def _own_limit(node: Node, baseline: Mapping[str, Any]) -> int | None:
    """The limit before the injection, bytes; without a baseline, the declared one of the
    topology."""
    measured: int | None = baseline.get("memory_limit_bytes")
    declared = node.spec.group.memory_mb
    return measured or (None if declared is None else declared << 20)


def _probe_usage(cluster: Cluster, node: Node, before: Usage) -> tuple[Usage, int]:
    """The usage while the page cache contains a file that would exceed the limit, and the file's
    size, bytes."""
    if not is_running(cluster, node) or before.memory_limit_bytes is None:
        return before, 0
    left_mb = (before.memory_limit_bytes - before.memory_bytes) >> 20
    wanted_mb = min(MOST_MB, max(0, left_mb) + SPARE_MB)
    try:
        run_script_inside(cluster, node, CACHE, wanted_mb)
        return cluster.runtime.usage(node.container), wanted_mb << 20
    finally:
        run_script_inside(cluster, node, DROP)
