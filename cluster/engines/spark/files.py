"""The state files that a query's batches store on HDFS: their number and size.

The folder `state` of its checkpoint is listed soon after a batch was committed. Another thread
lists it than the one that polls batches: a slow NameNode must not delay the events that faults wait
for. Files that the last listing did not contain belong to the batches since then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable, namenode
from streamquake.cluster.engines.observation import Observation
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.reports.record.event import Action

STATE = "state"
"""Spark's name for that folder (`StateStoreId`)."""


class StateFiles:
    """The pending listing of one query, for its newest batch."""

    def __init__(self, cluster: LiveCluster, job: str) -> None:
        self._cluster = cluster
        self._job = job
        self._store = cluster.topology.service_of("hdfs")
        self._due: int | None = None
        self._known: Mapping[str, int] = {}

    def await_listing(self, batch: int) -> None:
        """List the state files at the next poll, after a batch."""
        self._due = batch

    def poll(self) -> Iterator[Observation]:
        """The listing, if one is pending; no event for a query without state, or without a
        checkpoint on HDFS."""
        batch, self._due = self._due, None
        job = self._cluster.run.job
        place = urlsplit("" if job is None else job.values.get("checkpoint", ""))
        if batch is None or self._store is None or place.scheme != "hdfs":
            return
        folder = f"{place.path}/{STATE}"
        try:
            found = namenode(self._cluster, self._store).tree(folder)
        except NameNodeUnreachable:
            return
        if found:
            new = {name: size for name, size in found.items() if name not in self._known}
            self._known = found
            value = {
                "job": self._job,
                "checkpoint": batch,
                "path": folder,
                "files": new,
                "shared": dict(found),
            }
            yield Observation(action=Action.CHECKPOINT_FILES, value=value)
