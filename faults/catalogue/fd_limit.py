"""File descriptor limit: the node cannot open another file or connection."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.mechanisms.resources import is_running, run_script_inside
from streamquake.faults.requirement import Requirements, at_least, at_most, less_than

INSPECT = 'grep "open files" /proc/1/limits && ls /proc/1/fd'
LIMIT = 'prlimit --pid 1 --nofile="$1":'
"""Sets the soft limit only: it can be raised again, up to the hard limit, without a privilege."""
RETRIES = 5
LIMITS = re.compile(r"Max open files\s+(\d+)\s+(\d+)")


@dataclass(frozen=True, kw_only=True)
class OpenFiles:
    """The descriptors of a node's main process."""

    soft: int
    hard: int
    numbers: frozenset[int]

    @property
    def left(self) -> int:
        """How many more it can open: the kernel gives the lowest free number, and rejects one that
        is not below the soft limit (EMFILE; open(2), getrlimit(2))."""
        return self.soft - len([number for number in self.numbers if number < self.soft])

    def limit_that_leaves(self, spare: int) -> int:
        """The lowest limit under which `spare` more can be opened."""
        free = (number for number in count() if number not in self.numbers)
        return next(islice(free, spare, None))


@faults.register
class FdLimit(NodeFault):
    """Lower the main process's limit of open files to its number of open files plus `spare`.

    Connections count as files: with `spare: 0`, no client gets an answer, although the kernel still
    completes its handshake. In effect when at most `spare` files can be opened, computed from the
    numbers of the open descriptors as the kernel does. A restarted node has its original limit.
    """

    name: ClassVar[str] = "fd_limit"
    touches: ClassVar[str] = "files"
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"spare": 2}

    spare: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """How many more files it may open than at the injection."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        files = _inspect(cluster, target)
        return {"soft": files.soft, "open": len(files.numbers), "left": files.left}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        """Repeat until at most `spare` descriptors are free: a file may be closed while the limit
        is set."""
        first = last = self._lower(cluster, target)
        for _ in range(RETRIES):
            if _inspect(cluster, target).left <= self.spare:
                break
            last = self._lower(cluster, target)
        return replace(last, called_ns=first.called_ns)

    def _lower(self, cluster: Cluster, node: Node) -> InjectionTimes:
        return _limit(cluster, node, _inspect(cluster, node).limit_that_leaves(self.spare))

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        if not is_running(cluster, target):
            return Evidence(in_effect=False, healed=True, observations={"running": False})
        files = _inspect(cluster, target)
        own = baseline.get("soft", files.hard)
        return Evidence(
            in_effect=files.soft < own and files.left <= self.spare,
            healed=files.soft >= own,
            observations={"soft": files.soft, "open": len(files.numbers), "left": files.left},
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"left": at_most(self.spare), "soft": less_than(before.get("soft", math.inf))}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"soft": at_least(before.get("soft", 0))}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if not is_running(cluster, target):
            return nothing_done(cluster)
        return _limit(cluster, target, baseline.get("soft") or _inspect(cluster, target).hard)


def _inspect(cluster: Cluster, node: Node) -> OpenFiles:
    output = run_script_inside(cluster, node, INSPECT)
    limits = LIMITS.search(output)
    if limits is None:
        raise LookupError(f"{node.name}: the kernel reports no limit of open files: {output[:200]}")
    numbers = (line for line in output.splitlines() if line.isdigit())
    return OpenFiles(soft=int(limits[1]), hard=int(limits[2]), numbers=frozenset(map(int, numbers)))


def _limit(cluster: Cluster, node: Node, soft: int) -> InjectionTimes:
    called_ns = cluster.clock.epoch_ns()
    run_script_inside(cluster, node, LIMIT, soft)
    return until_now(cluster, called_ns, "prlimit")
