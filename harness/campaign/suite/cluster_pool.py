"""Clusters that runs have in turn: handed on where nothing of the former run is left, else new.

A cluster is handed on only where the next run wants an equal topology and the former one ended as
it should: every node is still the process that was started (none was killed, revived, replaced or
given an agent), every service is ready, no fault is open, and every service has forgotten the run.
Whatever else is the case, the cluster is removed and the next run gets one of its own; sharing
saves time and never decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType

from streamquake.cluster.cluster import Cluster, remove_cluster
from streamquake.cluster.engines.engine import CleansUpRuns, RunResidue, engine
from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.experiment.job_placeholders import runs_jobs
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.run.cluster_lease import ClusterLease, deploy_cluster, watched
from streamquake.harness.verdict.evidence.waits import NOT_MET
from streamquake.reports.record.event import Action
from streamquake.topologies.model import Topology

SPOILED = {
    **{action: f"the run did not reach: {wait}" for wait, action in NOT_MET.items()},
    Action.NODE_GIVEN_UP: "a node was given up",
    Action.FAULT_NOT_HEALED: "a fault was not seen healed",
    Action.NODE_REVIVED: "a node had ended by itself",
    Action.CONTAINER_OOM: "a node ran out of memory",
    Action.HARNESS_ERROR: "a part of the harness failed",
}
"""What in a run's history keeps its cluster from being handed on -> why."""


@dataclass(frozen=True, kw_only=True)
class IdleCluster:
    """A cluster that is there between two runs, and how it was when it was started."""

    cluster: Cluster
    processes: dict[str, tuple[str, int]]
    """Node -> its container, and when that was started."""


class ClusterPool:
    """The clusters of a suite, one at a time; a context manager that removes the last one."""

    def __init__(self, show_message: Callable[[str], None]) -> None:
        self.warnings: list[str] = []
        """What of a cluster could not be removed."""
        self.then: Topology | None = None
        """What the run after this one wants; None when this one is the last."""
        self.deployments = 0
        self._show_message = show_message
        self._standing: IdleCluster | None = None
        self._stack = ExitStack()

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    @contextmanager
    def cluster_for(self, lease: ClusterLease) -> Iterator[Cluster]:
        """See `Beds.bed`."""
        try:
            standing = self._handed_on(lease)
            logged = _logged(standing.cluster) if standing else {}
            standing = standing or self._deploy(lease)
            with watched(standing.cluster, lease, logged):
                yield standing.cluster
        except BaseException:
            self._remove()
            raise
        if self.then != lease.experiment.topology:
            self._remove()
        elif (reason := _mismatch(standing, lease)) is not None:
            self._show_message(f"the next run gets a new cluster: {reason}")
            self._remove()

    def _handed_on(self, lease: ClusterLease) -> IdleCluster | None:
        """The cluster that stands, if it is what the run wants; another one is removed."""
        standing = self._standing
        if standing is None:
            return None
        if standing.cluster.topology != lease.experiment.topology:
            self._remove()
            return None
        self._show_message(f"on the cluster of {standing.cluster.run_id}")
        return standing

    def _deploy(self, lease: ClusterLease) -> IdleCluster:
        self.deployments += 1
        cluster = self._stack.enter_context(
            deploy_cluster(lease, keep=False, warn=self.warnings.append)
        )
        self._standing = IdleCluster(cluster=cluster, processes=_processes(cluster))
        return self._standing

    def _remove(self) -> None:
        """Remove what stands, wholly also when it is interrupted."""
        standing, self._standing = self._standing, None
        stack, self._stack = self._stack, ExitStack()
        try:
            stack.close()
        except Interrupted:
            if standing is not None:
                self.warnings += remove_cluster(standing.cluster.runtime, standing.cluster.run_id)
            raise


def _mismatch(standing: IdleCluster, lease: ClusterLease) -> str | None:
    """Why a cluster must not be handed on after a run that came to its end, or None when it is as
    new. Never raises but for an interruption."""
    try:
        return (
            _marked(lease)
            or _changed(standing)
            or standing.cluster.pending()
            or _remembered(standing.cluster, lease)
        )
    except Exception as error:  # noqa: BLE001 - whatever keeps a cluster from being proven clean
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _marked(lease: ClusterLease) -> str | None:
    """What the run itself says: its history, its open faults, its kinds of faults."""
    history = lease.loop.history()
    found = next((why for action, why in SPOILED.items() if history.of(action)), None)
    if found is not None:
        return found
    if IntentLog(lease.folder.intents).open():
        return "a fault is open"
    agents = [s.fault for s in lease.experiment.faults if faults[s.fault].leaves_agent]
    return f"{agents[0]} left an agent in a node's process" if agents else None


def _changed(standing: IdleCluster) -> str | None:
    now = _processes(standing.cluster)
    changed = [name for name, process in standing.processes.items() if now.get(name) != process]
    return f"{', '.join(changed)} is no longer the process it was" if changed else None


def _remembered(cluster: Cluster, lease: ClusterLease) -> str | None:
    """Let every service forget the run, those that run jobs first; or why that cannot be."""
    left = RunResidue(run=lease.run_id, folders=_folders(lease.experiment))
    services = cluster.topology.services
    for name in sorted(services, key=lambda name: not runs_jobs(services[name].engine)):
        runner = engine(services[name].engine)
        if not isinstance(runner, CleansUpRuns):
            return f"{name} ({runner.name}) cannot forget a run"
        runner.forget(cluster, name, left)
    return None


def _folders(experiment: Experiment) -> tuple[str, ...]:
    outputs = experiment.promise.outputs.values()
    return tuple(output.hdfs for output in outputs if output.hdfs is not None)


def _processes(cluster: Cluster) -> dict[str, tuple[str, int]]:
    return {
        node.name: (node.container, cluster.state(node).started_ms)
        for node in cluster.nodes.values()
    }


def _logged(cluster: Cluster) -> dict[str, int]:
    """How many characters each node has logged so far."""
    return {node.name: len(cluster.runtime.logs(node.container)) for node in cluster.nodes.values()}
