"""Slow disk: the node writes and reads its disk at a low rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import CONTROL_GROUPS, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.disk_io import BLOCK_KB, disk_problem, run_on_disk, write_to_disk
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.mechanisms.resources import is_removed, is_running
from streamquake.faults.requirement import Requirements, at_least, one_of, some
from streamquake.topologies.model import Topology

FILES = (
    "-name io.max -o -name blkio.throttle.write_bps_device -o -name blkio.throttle.read_bps_device"
)
FIND = f"""
device=$(mountpoint -d .)
files=$(find {CONTROL_GROUPS} -path "*$1*" \\( {FILES} \\) 2>/dev/null) || true
"""
"""The files of the control group of container $1, of either version, that limit rates."""
LIMIT = f"""{FIND}
for file in $files; do
  case "$file" in
    */io.max) echo "$device rbps=$3 wbps=$3" > "$file" ;;
    *) echo "$device $2" > "$file" ;;
  esac
done
"""
"""The limit is $2 bytes per second in version 1, where 0 means no limit, and $3 in version 2, where
`max` does."""
INSPECT = f"""{FIND}
for file in $files; do grep "^$device " "$file" || true; done
"""
LIMITED_S = 0.5
"""About how long the probe takes at the limited rate, seconds."""
MOST_KB = 4096


@faults.register
class SlowDisk(NodeFault):
    """Limit the rate at which the node reads and writes its disk; for groups with `disk_mb`.

    The kernel throttles reads of the node's processes and the writes that they wait for (fsync,
    O_DSYNC, direct). Deferred writes are not limited on control groups of version 1 (kernel.org,
    cgroup-v1/blkio-controller), but are on version 2. In effect when a small synced write by the
    node's own user takes at least half as long as the rate implies, and twice as long as before.
    After a restart of the node the disk has its full speed.
    """

    name: ClassVar[str] = "slow_disk"
    touches: ClassVar[str] = "disk"
    shows_in_place: ClassVar[bool] = True
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"kb_per_s": 256}

    kb_per_s: Annotated[int, Field(ge=32, le=1024 * 1024)]
    """Kilobytes per second, for reads and writes each."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        return disk_problem(topology, role)

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        """The quickest of three writes: a busy disk is sometimes slow, a limited disk always."""
        durations_s = [write_to_disk(cluster, target, self._probe_kb).seconds for _ in range(3)]
        return {"write_s": min((s for s in durations_s if s is not None), default=None)}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        rate = self.kb_per_s * 1024
        return _limit(cluster, target, rate, rate)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        if not is_running(cluster, target):
            return Evidence(in_effect=False, healed=True, observations={"running": False})
        limits = run_on_disk(cluster, target, INSPECT, target.container).splitlines()
        write = write_to_disk(cluster, target, self._probe_kb)
        took_s, enough_s = write.seconds, self._slow_write_s(baseline)
        return Evidence(
            in_effect=bool(limits) and took_s is not None and took_s >= enough_s,
            healed=not limits and took_s is not None and took_s < enough_s,
            in_place=bool(limits),
            observations={"limits": limits, "write_s": took_s, "write_kb": self._probe_kb},
        )

    def _slow_write_s(self, before: Mapping[str, Any]) -> float:
        """How long a write of the probe takes at least while the disk is slow, seconds."""
        return max(self._probe_kb / self.kb_per_s / 2, 2 * (before.get("write_s") or 0.0))

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"limits": some(), "write_s": at_least(self._slow_write_s(before))}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"limits": one_of([])}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if is_removed(cluster, target):
            return nothing_done(cluster)
        return _limit(cluster, target, 0, "max")

    @property
    def _probe_kb(self) -> int:
        """Whole blocks that take about `LIMITED_S` at the limited rate."""
        size_kb = min(MOST_KB, int(self.kb_per_s * LIMITED_S))
        return max(BLOCK_KB, size_kb // BLOCK_KB * BLOCK_KB)


def _limit(cluster: Cluster, node: Node, in_v1: int, in_v2: int | str) -> InjectionTimes:
    called_ns = cluster.clock.epoch_ns()
    run_on_disk(cluster, node, LIMIT, node.container, in_v1, in_v2)
    return until_now(cluster, called_ns, "blkio")
