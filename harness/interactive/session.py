"""Clusters that stay up between commands: `up` or `run --keep` starts them, and their labels
identify them.

A kept cluster has no owner, so neither a reaper nor a sweep removes it. Its folder contains its
topology and the intents of the manually injected faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streamquake.cluster.cluster import Cluster, attach_cluster, remove_cluster, start_cluster
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.faults.injection.intents import IntentLog
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import bad_input, did_you_mean

COMMAND_LINE = "streamquake"
"""Replaces the file name in a problem of the command line."""


@dataclass(frozen=True, kw_only=True)
class ClusterSession:
    """A cluster that is up, and its folder."""

    cluster: Cluster
    folder: RunFolder

    @property
    def intents(self) -> IntentLog:
        return IntentLog(self.folder.intents)


def start_session(
    topology: Topology,
    *,
    out: Path,
    runtime: ContainerRuntime,
    clock: Clock,
    limit_s: float,
    show_message: Callable[[str], None],
    owner: str = "",
) -> ClusterSession:
    """Start a cluster; if it does not become ready, it is removed completely.

    Without an owner it outlives this process; with one (`labels.owner_of_this_process`) a sweep
    removes it when the owner is dead.

    Raises NotReadyInTime, NodeDied, ContainerError.
    """
    run_id = new_run_id()
    folder = RunFolder(out / run_id)
    for path in (folder.path, folder.logs, folder.data):
        path.mkdir(parents=True)
    plan = {
        "name": f"up-{topology.name}",
        "topology": topology.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    folder.write_manifest({"run_id": run_id, "by_hand": True, "experiment": plan, "seed": 0})
    cluster = Cluster(run_id=run_id, topology=topology, runtime=runtime, clock=clock)
    session = ClusterSession(cluster=cluster, folder=folder)
    tags = {labels.OWNER: owner, labels.FOLDER: str(folder.path.resolve())}
    try:
        with runtime.guard(run_id):
            start_cluster(cluster, tags=tags, limit_s=limit_s, show_message=show_message)
    except BaseException:
        remove(session)
        raise
    return session


def attach(runtime: ContainerRuntime, clock: Clock, run_id: str | None = None) -> ClusterSession:
    """The kept cluster with this id or prefix of an id; without one, the newest.

    Raises BadInput if no such cluster exists; the message names the existing clusters.
    """
    folders = _folders(runtime)
    if not folders:
        raise bad_input(COMMAND_LINE, "no cluster is up; start one with `streamquake up TOPOLOGY`")
    matching = [known_id for known_id in folders if known_id.startswith(run_id or "")]
    if not matching or (run_id is not None and len(matching) > 1):
        raise bad_input(
            COMMAND_LINE,
            f'expected the id of one kept cluster, got "{run_id}"'
            f"{did_you_mean(str(run_id), folders)}",
        )
    chosen = max(matching)
    folder = RunFolder(folders[chosen])
    try:
        plan = folder.read_manifest()["experiment"]
    except (OSError, ValueError, KeyError) as error:
        raise bad_input(
            COMMAND_LINE,
            f"the folder of the cluster {chosen} cannot be read ({error}); "
            "`streamquake sweep --all` removes the cluster",
        ) from error
    topology = Topology.model_validate(plan["topology"])
    cluster = attach_cluster(run_id=chosen, topology=topology, runtime=runtime, clock=clock)
    return ClusterSession(cluster=cluster, folder=folder)


def remove(session: ClusterSession) -> list[str]:
    """Save the logs and remove the cluster, also when an interruption ends the saving. Every step
    is tried; returns the failures."""
    failures = []
    try:
        session.cluster.save_logs(session.folder.logs)
    except Exception as error:  # noqa: BLE001 - missing logs do not prevent the removal
        failures.append(str(error))
    finally:
        left = remove_cluster(session.cluster.runtime, session.cluster.run_id)
    return [*failures, *left]


def _folders(runtime: ContainerRuntime) -> dict[str, Path]:
    """Id of a kept cluster -> its folder."""
    return {
        container.labels[labels.RUN]: Path(container.labels[labels.FOLDER])
        for container in runtime.find({labels.RUN: ""})
        if not container.labels.get(labels.OWNER) and labels.FOLDER in container.labels
    }
