"""The clusters of a suite's runs: reused if nothing of the previous run is left, else new.

A cluster is reused only if the next run has an equal topology and the previous run left nothing:
every node still has its first process (none was killed, revived, replaced or given an agent), every
service is ready, no fault is open, and every service has removed the data of the run. Otherwise the
cluster is removed and the next run gets a new one. Reuse saves time and never affects a verdict."""

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
from streamquake.harness.run.cluster_lease import ClusterLease, assign_to_run, deploy_cluster
from streamquake.harness.verdict.evidence.waits import NOT_MET
from streamquake.reports.record.event import Action
from streamquake.topologies.model import Topology

REUSE_BLOCKERS = {
    **{action: f"the run did not reach: {wait}" for wait, action in NOT_MET.items()},
    Action.NODE_GIVEN_UP: "a node was given up",
    Action.FAULT_NOT_HEALED: "the heal of a fault was not verified",
    Action.NODE_REVIVED: "a node had ended on its own",
    Action.CONTAINER_OOM: "a node ran out of memory",
    Action.HARNESS_ERROR: "a part of the harness failed",
}
"""Event in a run's history that prevents the reuse of its cluster -> the reason."""


@dataclass(frozen=True, kw_only=True)
class IdleCluster:
    """A cluster that is kept between two runs, and its processes when it was started."""

    cluster: Cluster
    processes: dict[str, tuple[str, int]]
    """Node -> its container, and the container's start time."""


class ClusterPool:
    """The clusters of a suite, one at a time; a context manager that removes the last one."""

    def __init__(self, show_message: Callable[[str], None]) -> None:
        self.warnings: list[str] = []
        """The parts of clusters that could not be removed."""
        self.next_topology: Topology | None = None
        """The topology of the next run; None when this one is the last."""
        self.deployments = 0
        self._show_message = show_message
        self._idle: IdleCluster | None = None
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
        """A cluster for one run, reused or new; see `ClusterLeases.cluster_for`."""
        try:
            idle = self._reused(lease)
            log_lengths = _log_lengths(idle.cluster) if idle else {}
            idle = idle or self._deploy(lease)
            with assign_to_run(idle.cluster, lease, log_lengths):
                yield idle.cluster
        except BaseException:
            self._remove()
            raise
        if self.next_topology != lease.experiment.topology:
            self._remove()
        elif (reason := _reuse_problem(idle, lease)) is not None:
            self._show_message(f"the next run gets a new cluster: {reason}")
            self._remove()

    def _reused(self, lease: ClusterLease) -> IdleCluster | None:
        """The idle cluster, if it has the run's topology; another one is removed."""
        idle = self._idle
        if idle is None:
            return None
        if idle.cluster.topology != lease.experiment.topology:
            self._remove()
            return None
        self._show_message(f"on the cluster of {idle.cluster.run_id}")
        return idle

    def _deploy(self, lease: ClusterLease) -> IdleCluster:
        self.deployments += 1
        cluster = self._stack.enter_context(
            deploy_cluster(lease, keep=False, warn=self.warnings.append)
        )
        self._idle = IdleCluster(cluster=cluster, processes=_processes(cluster))
        return self._idle

    def _remove(self) -> None:
        """Remove the idle cluster, completely even when interrupted."""
        idle, self._idle = self._idle, None
        stack, self._stack = self._stack, ExitStack()
        try:
            stack.close()
        except Interrupted:
            if idle is not None:
                self.warnings += remove_cluster(idle.cluster.runtime, idle.cluster.run_id)
            raise


def _reuse_problem(idle: IdleCluster, lease: ClusterLease) -> str | None:
    """Why a cluster must not be reused after a completed run; None if it may be. Raises only
    Interrupted."""
    try:
        return (
            _run_problem(lease)
            or _changed_processes(idle)
            or idle.cluster.pending()
            or _residue_problem(idle.cluster, lease)
        )
    except Exception as error:  # noqa: BLE001 - any error leaves the cluster unproven
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _run_problem(lease: ClusterLease) -> str | None:
    """What the run left according to its record: its history, its open faults, its agents."""
    history = lease.loop.history()
    found = next((why for action, why in REUSE_BLOCKERS.items() if history.of(action)), None)
    if found is not None:
        return found
    if IntentLog(lease.folder.intents).open_intents():
        return "a fault is open"
    agents = [s.fault for s in lease.experiment.faults if faults[s.fault].leaves_agent]
    return f"{agents[0]} left an agent in a node's process" if agents else None


def _changed_processes(idle: IdleCluster) -> str | None:
    now = _processes(idle.cluster)
    changed = [name for name, process in idle.processes.items() if now.get(name) != process]
    return f"the process of {', '.join(changed)} was replaced" if changed else None


def _residue_problem(cluster: Cluster, lease: ClusterLease) -> str | None:
    """Remove the run's residue from every service, job engines first; or why that failed."""
    left = RunResidue(run=lease.run_id, folders=_folders(lease.experiment))
    services = cluster.topology.services
    for name in sorted(services, key=lambda name: not runs_jobs(services[name].engine)):
        runner = engine(services[name].engine)
        if not isinstance(runner, CleansUpRuns):
            return f"{name} ({runner.name}) cannot remove the residue of a run"
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


def _log_lengths(cluster: Cluster) -> dict[str, int]:
    """How many characters each node has logged so far."""
    return {node.name: len(cluster.runtime.logs(node.container)) for node in cluster.nodes.values()}
