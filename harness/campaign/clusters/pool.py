"""The clusters of consecutive runs: reused if nothing of the previous run is left, else new.

A cluster is reused only if the next run has an equal topology and the clean-up after the previous
run proved that the cluster is as it was after its deployment (`cleaning.py`). Otherwise the cluster
is removed and the next run gets a new one. Each run that reuses a cluster records the proof. Reuse
saves time and never affects a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType

from streamquake.cluster.cluster import Cluster, remove_cluster
from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.campaign.clusters.cleaning import CleanUp, clean_up
from streamquake.harness.campaign.clusters.state import (
    ClusterState,
    first_difference,
    read_state,
    services_state,
)
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.run.cluster_lease import (
    NO_EARLIER_RUNS,
    ClusterLease,
    EarlierRuns,
    assign_to_run,
    deploy_cluster,
)
from streamquake.harness.verdict.evidence.waits import NOT_MET
from streamquake.reports.record.event import Action
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import Topology

REUSE_BLOCKERS = {
    **{action: f"the run did not reach: {wait}" for wait, action in NOT_MET.items()},
    Action.NODE_GIVEN_UP: "a node was given up",
    Action.FAULT_NOT_HEALED: "the heal of a fault was not verified",
    Action.HARNESS_ERROR: "a part of the harness failed",
}
"""Event in a run's history that prevents the reuse of its cluster -> the reason."""


class NotReusable(StreamquakeError):
    """The record of a run says that its cluster must not be reused; the message has the reason."""

    kind = ErrorKind.CLUSTER_FAILED


@dataclass(frozen=True, kw_only=True)
class IdleCluster:
    """A cluster that is kept between two runs."""

    cluster: Cluster
    deployed: ClusterState | None
    """Its state after the deployment; None if it could not be read."""
    runs: tuple[str, ...] = ()
    """The runs that have used it."""
    clean_up: CleanUp | None = None
    """The clean-up after the last of them."""


class ClusterPool:
    """The clusters of consecutive runs, one at a time; a context manager that removes the last."""

    def __init__(self, show_message: Callable[[str], None]) -> None:
        self.warnings: list[str] = []
        """The parts of clusters that could not be removed."""
        self.next_topology: Topology | None = None
        """The topology of the next run; None when this one is the last."""
        self.deployments = 0
        self._show_message = show_message
        self.idle: IdleCluster | None = None
        """The cluster that is kept for the next run."""
        self.deployed_run: str | None = None
        """The run that deployed the cluster which this pool must remove; None where there is
        none."""
        self._stack = ExitStack()

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    @contextmanager
    def cluster_for(self, lease: ClusterLease) -> Iterator[Cluster]:
        """A cluster for one run, reused or new; see `ClusterLeases.cluster_for`."""
        try:
            idle = self._reused(lease) or self._deploy(lease)
            with assign_to_run(idle.cluster, lease, _earlier_runs(idle)):
                yield idle.cluster
        except BaseException:
            self.remove()
            raise
        if self.next_topology != lease.experiment.topology:
            self.remove()
        else:
            self._clean_up(idle, lease)

    def adopt(self, idle: IdleCluster | None) -> None:
        """Keep a cluster that another pool may have used, or deployed, since; in place of the own
        one, which is removed where it is another one."""
        if idle is None or idle.cluster.run_id != self.deployed_run:
            self.remove()
        self.idle = idle

    def _reused(self, lease: ClusterLease) -> IdleCluster | None:
        """The idle cluster, if it has the run's topology; another one is removed. Its proof is
        recorded in the history of the run."""
        idle = self.idle
        if idle is None:
            return None
        if idle.cluster.topology != lease.experiment.topology:
            self.remove()
            return None
        assert idle.clean_up is not None
        if (reason := _changed_while_idle(idle)) is not None:
            self._show_message(f"a new cluster, since the idle one has changed: {reason}")
            self.remove()
            return None
        self._show_message(f"on the cluster of {idle.cluster.run_id}")
        lease.loop.record(
            Action.CLUSTER_REUSED,
            deployed_by=idle.cluster.run_id,
            runs_before=len(idle.runs),
            **idle.clean_up.fields,
        )
        return idle

    def _deploy(self, lease: ClusterLease) -> IdleCluster:
        self.deployments += 1
        cluster = self._stack.enter_context(
            deploy_cluster(lease, keep=False, warn=self.warnings.append)
        )
        self.deployed_run = cluster.run_id
        # Where no run follows on this cluster, its state is not needed.
        follows = self.next_topology == lease.experiment.topology
        self.idle = IdleCluster(
            cluster=cluster, deployed=_state_or_none(cluster) if follows else None
        )
        return self.idle

    def _clean_up(self, idle: IdleCluster, lease: ClusterLease) -> None:
        """Clean the cluster up for the next run, or remove it."""
        try:
            done = _cleaned(idle, lease)
        except Interrupted:
            self.remove()
            raise
        except Exception as error:  # noqa: BLE001 - any error leaves the cluster unproven
            self._show_message(f"the next run gets a new cluster: {_first_line(error)}")
            self.remove()
            return
        self.idle = replace(idle, runs=(*idle.runs, lease.run_id), clean_up=done)

    def remove(self) -> None:
        """Remove the cluster, completely even when interrupted."""
        idle, self.idle = self.idle, None
        deployed, self.deployed_run = self.deployed_run, None
        stack, self._stack = self._stack, ExitStack()
        try:
            stack.close()
        except Interrupted:
            if idle is not None:
                self.warnings += remove_cluster(idle.cluster.runtime, idle.cluster.run_id)
            raise
        if idle is not None and idle.cluster.run_id != deployed:  # another pool deployed it
            self.warnings += remove_cluster(idle.cluster.runtime, idle.cluster.run_id)


def _state_or_none(cluster: Cluster) -> ClusterState | None:
    """The state of a new cluster; None if it cannot be read, so that it is used for one run."""
    try:
        return read_state(cluster)
    except Interrupted:
        raise
    except Exception:  # noqa: BLE001 - the run itself does not need the state
        return None


def _changed_while_idle(idle: IdleCluster) -> str | None:
    """How the state of an idle cluster differs from the one after its deployment, such as by a
    process that ended since the clean-up."""
    assert idle.deployed is not None
    try:
        return first_difference(idle.deployed, read_state(idle.cluster))
    except Interrupted:
        raise
    except Exception as error:  # noqa: BLE001 - a state that cannot be read is not proven
        return _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _cleaned(idle: IdleCluster, lease: ClusterLease) -> CleanUp:
    """Clean up after a completed run. Raises NotReusable with what its record says against a reuse,
    and the errors of `clean_up`."""
    if (reason := _run_problem(lease)) is not None:
        raise NotReusable(reason)
    if idle.deployed is None:
        services_state(idle.cluster)  # raises the reason
        raise NotReusable("the state of the cluster after its deployment is not known")
    had_agents = any(faults[step.fault].leaves_agent for step in lease.experiment.faults)
    return clean_up(idle.cluster, idle.deployed, had_agents=had_agents)


def _run_problem(lease: ClusterLease) -> str | None:
    """What the run's record says against a reuse of its cluster."""
    history = lease.loop.history()
    found = next((why for action, why in REUSE_BLOCKERS.items() if history.of(action)), None)
    if found is not None:
        return found
    if IntentLog(lease.folder.intents).open_intents():
        return "a fault is open"
    return None


def _earlier_runs(idle: IdleCluster) -> EarlierRuns:
    """What the runs so far left in the logs, in those of former containers too, and in services."""
    if idle.clean_up is None:
        return NO_EARLIER_RUNS
    cluster = idle.cluster
    return EarlierRuns(
        logs={node.name: cluster.log_of(node) for node in cluster.nodes.values()},
        remembered=idle.clean_up.remembered,
    )
