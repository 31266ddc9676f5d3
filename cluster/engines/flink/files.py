"""The files that a Flink job's checkpoints store on HDFS: their number and size.

A checkpoint's folder is listed soon after the checkpoint completed: if few checkpoints are
retained, the folder is removed some checkpoints later. Another thread lists it than the one that
polls checkpoints. The job's folder `shared` is listed with it: incremental checkpoints store files
there that several of them use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable, namenode
from streamquake.cluster.engines.observation import Observation
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.reports.record.event import Action

SHARED = "shared"
"""Flink's name for that folder (`AbstractFsCheckpointStorageAccess`)."""
MAX_PENDING = 16
"""The most pending listings: the oldest are dropped when the NameNode is unreachable for long."""


class CheckpointFiles:
    """The pending listings of one job."""

    def __init__(self, cluster: LiveCluster, job: str) -> None:
        self._cluster = cluster
        self._job = job
        self._store = cluster.topology.service_of("hdfs")
        self._due: deque[tuple[int, str]] = deque(maxlen=MAX_PENDING)

    def await_listing(self, completed: Mapping[str, Any]) -> None:
        """List the folder of a completed checkpoint at the next poll, if it is on HDFS."""
        path = urlsplit(completed.get("path") or "")
        if path.scheme == "hdfs" and self._store is not None:
            self._due.append((completed["checkpoint"], path.path))

    def poll(self) -> Iterator[Observation]:
        """The pending listings; a removed folder gives no event."""
        while self._due and self._store is not None:
            checkpoint, path = self._due.popleft()
            name_node = namenode(self._cluster, self._store)
            try:
                files = dict(name_node.files(path))
                shared = dict(name_node.files(f"{path.rpartition('/')[0]}/{SHARED}"))
            except NameNodeUnreachable:
                return
            if files:
                value = {
                    "job": self._job,
                    "checkpoint": checkpoint,
                    "path": path,
                    "files": files,
                    "shared": shared,
                }
                yield Observation(action=Action.CHECKPOINT_FILES, value=value)
