"""The lease of a cluster to one run: deploys, guards and watches the cluster, and removes it.

Every resource is released in the reverse order; a failed step does not stop the next ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from streamquake.cluster.cluster import Cluster, all_nodes, remove_cluster, start_cluster
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import Clock, on_run_clock_ns
from streamquake.cluster.runtime.runtime import ContainerEvent, ContainerRuntime
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.job_preparation import RunningJob
from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.reports.record.run_folder import RunFolder

CONTAINER_ACTIONS = {
    "die": Action.CONTAINER_DIED,
    "oom": Action.CONTAINER_OOM,
    "start": Action.CONTAINER_STARTED,
}
SANDBOX_ACTIONS = {"die": Action.SANDBOX_DIED}
"""A sandbox does nothing: only its end matters."""


@dataclass(frozen=True, kw_only=True)
class ClusterLease:
    """A run's request for a cluster, and the receivers of its messages and warnings."""

    run_id: str
    experiment: Experiment
    runtime: ContainerRuntime
    clock: Clock
    loop: EventLoop
    folder: RunFolder
    show_message: Callable[[str], None]
    warn: Callable[[str], None]


class ClusterLeases(Protocol):
    """A provider of clusters for runs."""

    def cluster_for(self, lease: ClusterLease) -> AbstractContextManager[Cluster]:
        """Provide a cluster that is ready, and record its container events, until the end of the
        block; afterwards its logs are in the run's folder. Raises NotReadyInTime, NodeDied,
        ContainerError."""
        ...


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """What earlier runs left on a cluster, which is not the next run's."""

    logs: Mapping[str, str] = field(default_factory=dict)
    """Node -> its log so far."""
    remembered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Service -> what it remembers of them."""


NO_EARLIER_RUNS = EarlierRuns()


class DedicatedClusters:
    """One cluster for each run, until `remove`; with `keep` it stays up, like a cluster of
    `streamquake up`."""

    def __init__(self, *, keep: bool = False) -> None:
        self.warnings: list[str] = []
        """What could not be removed."""
        self._keep = keep
        self._stack = ExitStack()

    @contextmanager
    def cluster_for(self, lease: ClusterLease) -> Iterator[Cluster]:
        cluster = self._stack.enter_context(
            deploy_cluster(lease, keep=self._keep, warn=self.warnings.append)
        )
        with assign_to_run(cluster, lease):
            yield cluster

    def remove(self) -> None:
        """Remove the clusters. A failure is a warning."""
        try:
            self._stack.close()
        except Exception as error:  # noqa: BLE001 - a failed tear-down never hides a verdict
            self.warnings.append(f"tear-down: {error}")

    @contextmanager
    def removed_meanwhile(self) -> Iterator[None]:
        """Remove the clusters while the block runs, which does not need them."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="removal") as pool:
            pool.submit(self.remove)
            yield


@contextmanager
def deploy_cluster(
    lease: ClusterLease, *, keep: bool, warn: Callable[[str], None]
) -> Iterator[Cluster]:
    """Start the topology of a run's experiment, wait until it is ready, and remove it at the end
    of the block.

    With `keep` it stays up, without an owner. `warn` gets a message for each container that could
    not be removed. Raises NotReadyInTime, NodeDied, ContainerError.
    """
    cluster = Cluster(
        run_id=lease.run_id,
        topology=lease.experiment.topology,
        runtime=lease.runtime,
        clock=lease.clock,
    )
    owner = "" if keep else labels.owner_of_this_process()
    tags = {labels.OWNER: owner, labels.FOLDER: str(lease.folder.path.resolve())}
    with ExitStack() as stack:
        if not keep and all_nodes(cluster.topology):
            stack.enter_context(cluster.runtime.guard(cluster.run_id))
            stack.callback(_remove, cluster, warn)
        try:
            limit_s = lease.experiment.limits.ready_s
            start_cluster(cluster, tags=tags, limit_s=limit_s, show_message=lease.show_message)
        except BaseException:
            _save_logs(cluster, lease, NO_EARLIER_RUNS)
            raise
        yield cluster


@contextmanager
def assign_to_run(
    cluster: Cluster,
    lease: ClusterLease,
    earlier: EarlierRuns = NO_EARLIER_RUNS,
) -> Iterator[None]:
    """Assign the cluster to the run until the end of the block. Container events are recorded in
    the run's history. At the end the logs are saved into the run's folder, without what was logged
    before the run began."""
    with ExitStack() as stack:
        stack.enter_context(cluster.used_by(lease.run_id, earlier.remembered))
        stack.callback(_save_logs, cluster, lease, earlier)
        if cluster.nodes:
            stack.enter_context(_container_events(cluster, lease.loop))
        yield


@contextmanager
def follow_job(loop: EventLoop, job: RunningJob) -> Iterator[None]:
    """Watch a run's job in a background thread until the end of the block."""
    stop = threading.Event()

    def follow() -> None:
        job.follow(loop.record_event, loop.measure, stop)

    with background_thread(follow, loop, f"follow-{job.service}", stop.set):
        yield


@contextmanager
def background_thread(
    work: Callable[[], None], loop: EventLoop, name: str, stop: Callable[[], None]
) -> Iterator[None]:
    """Run `work` in a thread until the end of the block. If it raises, the error is recorded in
    the history and the run continues."""

    def guarded() -> None:
        try:
            work()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - recorded, never hidden
            message = f"{type(error).__name__}: {error}"
            loop.record(Action.HARNESS_ERROR, part=name, error_text=message, error=message)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(timeout=10)


@contextmanager
def _container_events(cluster: Cluster, loop: EventLoop) -> Iterator[None]:
    def follow() -> None:
        for event in cluster.runtime.events({labels.RUN: cluster.run_id}):
            if (draft := _draft(event, loop.clock)) is not None:
                loop.record_event(draft)

    with background_thread(follow, loop, "container-events", cluster.runtime.close_events):
        yield


def _draft(event: ContainerEvent, clock: Clock) -> EventDraft | None:
    """The event for the history; None for one that no node is concerned by, such as the end of a
    helper container."""
    is_sandbox = labels.SANDBOX in event.labels
    action = (SANDBOX_ACTIONS if is_sandbox else CONTAINER_ACTIONS).get(event.action)
    node = event.labels.get(labels.SANDBOX if is_sandbox else labels.NODE)
    if action is None or node is None:
        return None
    return EventDraft(
        at_ns=on_run_clock_ns(clock, event.epoch_ms * 1_000_000),
        process="containers",
        kind=Kind.INFO,
        action=action,
        value={"node": node, "exit_code": event.exit_code},
    )


def _save_logs(cluster: Cluster, lease: ClusterLease, earlier: EarlierRuns) -> None:
    """Save the logs. A log that does not begin with the earlier one, since its node was replaced by
    another process, is saved as a whole."""
    try:
        cluster.save_logs(lease.folder.logs)
        for node in cluster.nodes.values():
            if text := earlier.logs.get(node.name):
                path = lease.folder.logs / node.spec.host / "log.txt"
                # In bytes: a text would be read with other line ends than it has.
                path.write_bytes(path.read_bytes().removeprefix(text.encode()))
    except Exception as error:  # noqa: BLE001 - a failed step of the tear-down stops no other step
        lease.warn(str(error))


def _remove(cluster: Cluster, warn: Callable[[str], None]) -> None:
    try:
        for failure in remove_cluster(cluster.runtime, cluster.run_id):
            warn(f"not removed: {failure}")
    except Exception as error:  # noqa: BLE001 - a failed tear-down never hides a verdict
        warn(f"tear-down: {error}")
