"""The clusters that the workers of one pytest-xdist session use in turn, one for each topology.

For each topology there is a file that is locked by the worker that uses the cluster, and one with
what the next worker must know about it. While one worker judges its run, another one uses the
cluster. A worker removes the clusters that it deployed as soon as no other worker uses them. If it
dies, the guard of its containers removes them, and the next worker deploys a new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamquake.cluster.cluster import Cluster, attach_cluster
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerError, ContainerRuntime
from streamquake.harness.campaign.clusters.cleaning import CleanUp
from streamquake.harness.campaign.clusters.pool import ClusterPool, IdleCluster
from streamquake.harness.campaign.clusters.state import ClusterState
from streamquake.harness.run.cluster_lease import ClusterLease
from streamquake.topologies.model import Topology


@dataclass(frozen=True, kw_only=True)
class StoredCluster:
    """What a worker writes about a cluster for the next one."""

    run_id: str
    """The id of the run that deployed it."""
    deployed: ClusterState | None
    runs: tuple[str, ...]
    clean_up: CleanUp | None


class SharedClusters:
    """One worker's share of them; provides clusters for runs (`ClusterLeases`)."""

    def __init__(
        self,
        folder: Path,
        runtime: ContainerRuntime,
        clock: Clock,
        show_message: Callable[[str], None],
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._runtime, self._clock = folder, runtime, clock
        self._show_message = show_message
        self._pools: dict[str, ClusterPool] = {}

    @property
    def warnings(self) -> list[str]:
        """The parts of clusters that could not be removed."""
        return [warning for pool in self._pools.values() for warning in pool.warnings]

    @contextmanager
    def cluster_for(self, lease: ClusterLease) -> Iterator[Cluster]:
        """The cluster of the run's topology, used by this worker alone during the block."""
        topology = lease.experiment.topology
        name = _name_of(topology)
        for other in self._pools.keys() - {name}:
            self._remove(other, wait=False)
        pool = self._pools.setdefault(name, ClusterPool(self._show_message))
        pool.next_topology = topology
        with self._turn(name):
            pool.adopt(self._stored(name, topology))
            try:
                with pool.cluster_for(lease) as cluster:
                    yield cluster
            finally:
                self._store(name, pool.idle)

    def remove(self) -> None:
        """Remove the clusters that this worker deployed, when no other worker uses them."""
        for name in self._pools:
            self._remove(name, wait=True)

    def _remove(self, name: str, *, wait: bool) -> None:
        """Remove a cluster that this worker deployed; without `wait` only if no other uses it."""
        pool = self._pools[name]
        if pool.deployed_run is None:
            return
        with self._turn(name, wait=wait) as is_mine:
            if not is_mine:
                return
            stored = self._read(name)
            if stored is not None and stored.run_id == pool.deployed_run:
                self._path(name).unlink()
            pool.remove()

    @contextmanager
    def _turn(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of a topology during the block; False without `wait` where another worker
        holds it. The lock of a process that dies is released."""
        with (self._folder / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    yield False
                    return
                self._show_message("waiting until another worker has used the cluster")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield True

    def _stored(self, name: str, topology: Topology) -> IdleCluster | None:
        """The cluster that a worker left; None if there is none, or it is gone."""
        stored = self._read(name)
        if stored is None:
            return None
        try:
            cluster = attach_cluster(
                run_id=stored.run_id, topology=topology, runtime=self._runtime, clock=self._clock
            )
        except ContainerError:
            return None
        return IdleCluster(
            cluster=cluster, deployed=stored.deployed, runs=stored.runs, clean_up=stored.clean_up
        )

    def _read(self, name: str) -> StoredCluster | None:
        path = self._path(name)
        if not path.exists():
            return None
        # Written by a worker of this session, in its own folder.
        found: StoredCluster = pickle.loads(path.read_bytes())
        return found

    def _store(self, name: str, idle: IdleCluster | None) -> None:
        path = self._path(name)
        if idle is None or idle.clean_up is None:
            path.unlink(missing_ok=True)
            return
        stored = StoredCluster(
            run_id=idle.cluster.run_id,
            deployed=idle.deployed,
            runs=idle.runs,
            clean_up=idle.clean_up,
        )
        path.write_bytes(pickle.dumps(stored))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.cluster"


def _name_of(topology: Topology) -> str:
    """A name that equal topologies share."""
    document: Mapping[str, object] = topology.model_dump(mode="json")
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
