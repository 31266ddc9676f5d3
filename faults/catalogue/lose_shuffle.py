"""Shuffle output lost: the shuffle files of finished tasks are deleted, the executor stays up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.spark.config import WORK
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.command_retry import run_again_on_failure
from streamquake.cluster.runtime.runtime import ContainerError, InjectionTimes
from streamquake.faults.catalogue.kill_executor import ROLE
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.mechanisms.resources import is_running, run_inside
from streamquake.faults.requirement import Requirements, more_than, one_of
from streamquake.topologies.model import Topology

MARK = f"{WORK}/streamquake-lost"
LOSE = f"find {WORK} -type f -name 'shuffle_*' -print -delete 2>/dev/null | wc -l > {MARK}"
"""Every batch creates and deletes files, so the script counts the lost ones as it deletes them."""


@faults.register
class LoseShuffle(NodeFault):
    """Delete every shuffle file on a worker; tasks that fetch them fail, and the stage that wrote
    them runs again. A batch without an exchange has none, and a finished batch needs none."""

    name: ClassVar[str] = "lose_shuffle"
    touches: ClassVar[str] = "shuffle"
    lasts: ClassVar[bool] = False
    engines: ClassVar[tuple[str, ...]] = ("spark",)
    usual: ClassVar[str] = "spark/worker-1"

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        kind = role.partition("/")[2]
        return None if kind == ROLE else f"a {kind} stores no shuffle files; target a {ROLE}"

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        cluster.runtime.exec(target.container, ["sh", "-c", LOSE])
        return until_now(cluster, called_ns, "exec")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when there were files to delete."""
        lost = _files_lost(cluster, target)
        return Evidence(
            in_effect=bool(lost), healed=lost is None, observations={"files_lost": lost}
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"files_lost": more_than(0)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"files_lost": one_of(None)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        """Remove only the mark: the tasks that wrote the files must run again to restore them."""
        if _files_lost(cluster, target) is None:
            return nothing_done(cluster)
        called_ns = cluster.clock.epoch_ns()
        run_again_on_failure(cluster.runtime, target.container, ["rm", "-f", MARK])
        return until_now(cluster, called_ns, "exec")


def _files_lost(cluster: Cluster, node: Node) -> int | None:
    """How many files were lost on the node; None where the fault was not injected, or the node does
    not run. Raises ContainerError where a running node does not answer."""
    if not is_running(cluster, node):
        return None
    try:
        done = run_inside(cluster, node, ["cat", MARK])
    except ContainerError:
        if is_running(cluster, node):
            raise
        return None
    return int(done.output) if done.exit_code == 0 else None
