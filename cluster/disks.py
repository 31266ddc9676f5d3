"""Disks of a fixed size for the nodes of groups with `disk_mb`.

One helper container, the keeper, creates an ext4 file system in a file for each such node and
mounts it through a loop device. The kernel frees the device after its last unmount (autoclear; see
loop(4)). The node's data is on an anonymous volume that the engine mounts from the same device. So
a disk outlives its node's restarts, the keeper can use it while the node is down, and nothing is
left when both containers are removed, in any order. The keeper is found and removed by label, like
any node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.command_retry import run_again_on_failure
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerSpec,
    ContainerStatus,
    ExecResult,
    ResponseLost,
)
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.topologies.model import NodeSpec

KEEPER_NODE = "disks/keeper-1"
FOLDER = "/disks"
DEVICES = f"{FOLDER}/devices"
"""Written last: a line `HOST DEVICE` for each disk."""
READY_WITHIN_S = 60.0
KEEP = """
set -eu
cd "$0"
for disk in "$@"; do
  host=${disk%:*}
  truncate -s "${disk##*:}M" "$host.img"
  mkfs.ext4 -q -m 0 "$host.img"
  mkdir "$host"
  tries=0
  until
    device=$(losetup -f)
    [ -b "$device" ] || mknod "$device" b 7 "${device#/dev/loop}"
    mount -o loop "$host.img" "$host"
  do
    tries=$((tries + 1))
    [ "$tries" -lt 20 ] || exit 1
  done
  rmdir "$host/lost+found"
  echo "$host $(findmnt -no SOURCE "$host")" >> devices.tmp
done
mv devices.tmp devices
exec sleep infinity
"""
"""A container's /dev is a copy from its start, so newer loop devices are added to it; and another
process may take a device between check and mount. Without `lost+found` the disk is empty, and the
engine gives it the owner that the node's image needs."""
USED = "df -m --output=used . | tail -n 1"
"""Prints the megabytes in use on the disk of the working folder."""


class Disks:
    """The disks of one cluster."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self._keeper: str | None = None
        self._devices: Mapping[str, str] = {}

    def start(self, run_labels: Mapping[str, str]) -> None:
        """Create every disk; none where no group has `disk_mb`. Raises ContainerError."""
        sizes = {node.host: node.group.disk_mb for node in self._cluster.topology.nodes()}
        requested = [f"{host}:{size}" for host, size in sizes.items() if size is not None]
        if not requested:
            return
        try:
            self._keeper = self._cluster.runtime.start(self._spec(requested, run_labels))
        except ContainerError as error:
            raise ContainerError(
                f"the keeper of the disks (`disk_mb`) could not start: {error}; it needs loop "
                "devices on the engine's machine (`sudo modprobe loop`), and a rootful engine"
            ) from error
        self._await_devices()

    def find(self) -> None:
        """Find the disks of a cluster that another process started."""
        run_labels = {labels.RUN: self._cluster.run_id, labels.NODE: KEEPER_NODE}
        for found in self._cluster.runtime.find(run_labels):
            self._keeper = found.id
            self._await_devices()

    def bound(
        self, node: NodeSpec, volumes: Sequence[str]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """A node's volumes: those not on its disk, and path -> device of those on its disk."""
        device = self._devices.get(node.host)
        on_disk = dict.fromkeys(volumes[:1], device) if device else {}
        return tuple(volumes[len(on_disk) :]), on_disk

    def device_of(self, node: NodeSpec) -> str:
        """The block device of a node's disk, such as `/dev/loop3`. Raises LookupError."""
        if node.host not in self._devices:
            raise LookupError(f"{node.name} has no disk of its own; give its group `disk_mb`")
        return self._devices[node.host]

    def used_mb(self) -> Mapping[str, int]:
        """Node -> megabytes in use on its disk, for every node with a disk of its own. Raises
        ContainerError."""
        found = {}
        for node in self._cluster.topology.nodes():
            if node.group.disk_mb is not None:
                done = self.run(node, USED)
                if done.exit_code != 0:
                    raise ContainerError(f"{node.name}: its disk could not be read: {done.output}")
                found[node.name] = int(done.output)
        return found

    def run(self, node: NodeSpec, script: str, *arguments: str) -> ExecResult:
        """Run a shell script in the keeper, in the folder of a node's disk.

        `arguments` are its $1, $2, … It must be safe to run twice: it is repeated when the engine
        loses the output. Works while the node is down or frozen. Raises LookupError,
        ContainerError.
        """
        self.device_of(node)
        assert self._keeper is not None
        argv = ["sh", "-c", f'cd "$0" && {script}', f"{FOLDER}/{node.host}", *arguments]
        return run_again_on_failure(self._cluster.runtime, self._keeper, argv, timeout_s=30)

    def _await_devices(self) -> None:
        wait_until(
            self._pending, what="the disks", limit_s=READY_WITHIN_S, clock=self._cluster.clock
        )

    def _pending(self) -> str | None:
        assert self._keeper is not None
        runtime = self._cluster.runtime
        if runtime.inspect(self._keeper).status != ContainerStatus.RUNNING:
            raise ContainerError(f"the disks could not be created: {runtime.logs(self._keeper)}")
        try:
            listed = runtime.exec(self._keeper, ["cat", DEVICES])
        except ResponseLost as lost:
            return str(lost)
        if listed.exit_code != 0:
            return "they are being created"
        pairs = (line.split() for line in listed.output.splitlines())
        self._devices = dict(pairs)
        return None

    def _spec(self, requested: Sequence[str], run_labels: Mapping[str, str]) -> ContainerSpec:
        return ContainerSpec(
            name=self._cluster.container_name("disks"),
            image=recipe("toolbox").tag,
            command=("bash", "-c", KEEP, FOLDER, *requested),
            labels={**run_labels, labels.NODE: KEEPER_NODE},
            volumes=(FOLDER,),
            keeps_disks=True,
            memory_mb=256,
        )
