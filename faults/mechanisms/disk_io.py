"""Common functions of the faults on a node's disk: write to it as the node's own user, or as the
keeper, the container that mounts the disks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.faults.mechanisms.resources import PROBE, group_of, is_running
from streamquake.topologies.model import Topology

BLOCK_KB = 64
WRITE = f"""
dd if=/dev/zero of="$1/{PROBE}" bs={BLOCK_KB}k count="$2" oflag=dsync 2>&1
rm -f "$1/{PROBE}"
"""
"""Writes $2 blocks into folder $1, each on the disk before the next."""
WRITE_ON_DEVICE = f"""
while read -r device folder rest; do [ "$device" != "$1" ] || break; done < /proc/mounts
set -- "$folder" "$2"
{WRITE}
"""
"""Writes $2 blocks into the folder where device $1 is mounted."""
DURATION = re.compile(r"copied, ([\d.e-]+) s")
FAILED = re.compile(r"dd: .*")
WRITE_LIMIT_S = 30


@dataclass(frozen=True, kw_only=True)
class WriteResult:
    """The result of a write: its duration, seconds, or None where it failed."""

    seconds: float | None
    answer: str
    by: Literal["node", "keeper"]


def disk_problem(topology: Topology, role: str) -> str | None:
    """Why the disk of a role's nodes cannot be disturbed, or None."""
    if group_of(topology, role).disk_mb is not None:
        return None
    return (
        f"{role} has no disk of its own, and the engine's must not be disturbed; give it a size "
        "in the topology, such as `disk_mb: 1024`"
    )


def run_on_disk(cluster: Cluster, node: Node, script: str, *words: object) -> str:
    """The output of a shell script that the keeper runs in the folder of the node's disk.

    Raises ContainerError when it fails.
    """
    done = cluster.disks.run(node.spec, script, *map(str, words))
    if done.exit_code != 0:
        raise ContainerError(f"the disk of {node.name}: {done.output.strip()[-300:]}")
    return done.output


def write_to_disk(cluster: Cluster, node: Node, kilobytes: int) -> WriteResult:
    """Write to the node's disk, as the node's own user; as the keeper while the node is down."""
    blocks = str(max(1, kilobytes // BLOCK_KB))
    if not is_running(cluster, node):
        return _read(cluster.disks.run(node.spec, WRITE, ".", blocks).output, "keeper")
    argv = ["sh", "-c", WRITE_ON_DEVICE, "sh", cluster.disks.device_of(node.spec), blocks]
    done = cluster.runtime.exec(node.container, argv, timeout_s=WRITE_LIMIT_S)
    return _read(done.output, "node")


def _read(output: str, by: Literal["node", "keeper"]) -> WriteResult:
    failed, duration = FAILED.search(output), DURATION.search(output)
    if failed is not None or duration is None:
        return WriteResult(
            seconds=None, answer=failed[0] if failed else output.strip()[-200:], by=by
        )
    return WriteResult(seconds=float(duration[1]), answer=output.strip().splitlines()[-1], by=by)
