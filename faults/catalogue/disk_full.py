"""Disk full: no space is left where the node keeps its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.disk_io import disk_problem, run_on_disk, write_to_disk
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.mechanisms.resources import is_removed
from streamquake.faults.requirement import Requirements, one_of, text_with
from streamquake.topologies.limits import LARGEST_MB
from streamquake.topologies.model import Topology

FILLER = ".streamquake-filler"
FILL = f"""
rm -f {FILLER}
size=$(($(df -k --output=avail . | tail -n 1) - $1))
[ "$size" -le 0 ] || fallocate -l "${{size}}K" {FILLER} || true
[ "$1" -gt 0 ] || dd if=/dev/zero of={FILLER} bs=4k oflag=append conv=notrunc 2>/dev/null || true
while [ -e {FILLER} ]; do
  freed=$(($(df -k --output=avail . | tail -n 1) - $1))
  [ "$freed" -le 0 ] ||
    dd if=/dev/zero of={FILLER} bs=1k count="$freed" oflag=append conv=notrunc,nocreat
  sleep 0.2
done > /dev/null 2>&1 &
"""
"""Leaves $1 kilobytes free. The free space is not always available in one piece: the rest is
written block by block until the disk is full. Space that becomes free later, such as that of a
checkpoint which its job discards, is filled too, as long as the filler is there."""
EMPTY = f"rm -f {FILLER}"
INSPECT = f"df -k --output=avail . | tail -n 1; [ ! -e {FILLER} ] || echo {FILLER}"
NO_SPACE = "No space left"
"""A part of the error of a write to a full disk."""


@faults.register
class DiskFull(NodeFault):
    """Fill the node's disk except for `leave_mb`; for groups with `disk_mb` in the topology.

    In effect when the filler is on the disk and the node's own user can write no more than the
    space that was left (ENOSPC). The filler survives a restart of the node; heal removes it even
    while the node is down. Where the node deletes files of its own, their space is filled within
    0.2 s.
    """

    name: ClassVar[str] = "disk_full"
    touches: ClassVar[str] = "disk"
    shows_in_place: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"leave_mb": 0}

    leave_mb: Annotated[int, Field(ge=0, le=LARGEST_MB)] = 0
    """Space that is left free, megabytes."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        return disk_problem(topology, role)

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        free_kb, _ = _inspect(cluster, target)
        return {"free_kb": free_kb}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        run_on_disk(cluster, target, FILL, self.leave_mb * 1024)
        return until_now(cluster, called_ns, "filler")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        if is_removed(cluster, target):
            return Evidence(in_effect=False, healed=True)
        free_kb, applied = _inspect(cluster, target)
        write = write_to_disk(cluster, target, (self.leave_mb + 1) * 1024)
        rejected = NO_SPACE in write.answer
        return Evidence(
            in_effect=applied and rejected,
            healed=not applied and not rejected,
            in_place=applied and not (write.seconds is not None and write.by == "node"),
            observations={
                "free_kb": free_kb,
                "filler": applied,
                "write": write.answer,
                "as": write.by,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"filler": one_of(True), "write": text_with(NO_SPACE)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"filler": one_of(False)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if is_removed(cluster, target):
            return nothing_done(cluster)
        called_ns = cluster.clock.epoch_ns()
        run_on_disk(cluster, target, EMPTY)
        return until_now(cluster, called_ns, "filler")


def _inspect(cluster: Cluster, target: Node) -> tuple[int, bool]:
    """Free kilobytes on the node's disk, and whether the filler is on it."""
    free, *filler = run_on_disk(cluster, target, INSPECT).split()
    return int(free), bool(filler)
