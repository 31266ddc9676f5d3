"""The state of the workers that a standalone master reports over its published port."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

import requests

from streamquake.cluster.engines.spark.config import MASTER_UI
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.topologies.errors import ErrorKind, StreamquakeError

POLL_S = 2.0


class MasterUnreachable(StreamquakeError):
    """The master did not answer in time; the report states the error."""

    kind = ErrorKind.CLUSTER_FAILED


class SparkMaster(Protocol):
    """The query to a master."""

    def state(self) -> dict[str, Any]:
        """Its report on itself, its workers and programs. Raises MasterUnreachable."""
        ...


class LiveMaster:
    """A running master."""

    def __init__(self, address: str) -> None:
        self._address = address

    def state(self) -> dict[str, Any]:
        try:
            with loopback_session() as session:
                response = session.get(f"http://{self._address}/json/", timeout=POLL_S)
                report: dict[str, Any] = response.json()
        except requests.RequestException as error:
            raise MasterUnreachable(
                f"the master does not answer: {type(error).__name__}"
            ) from error
        return report


def pending(cluster: LiveCluster, service: str) -> str | None:
    """Why not every worker is registered with the master, or None. A worker must be alive and have
    sent a heartbeat since its container was started: the master reports a killed worker as alive
    for some seconds."""
    try:
        state = _master(cluster, service).state()
    except MasterUnreachable as error:
        return str(error)
    if state["status"] != "ALIVE":
        return f"the master is {state['status']}"
    heartbeats_ms: dict[str, int] = {}
    for worker in state["workers"]:
        if worker["state"] == "ALIVE":
            heartbeats_ms[worker["host"]] = max(
                heartbeats_ms.get(worker["host"], 0), worker["lastheartbeat"]
            )
    missing = [
        node.name
        for node in cluster.of_role(f"{service}/worker")
        if heartbeats_ms.get(node.spec.host, -1) < cluster.state(node).started_ms
    ]
    return f"not registered: {', '.join(missing)}" if missing else None


def running_programs(cluster: LiveCluster, service: str) -> frozenset[str]:
    """The ids of the programs that have executors or wait for them. Raises MasterUnreachable."""
    state = _master(cluster, service).state()
    return frozenset(str(program["id"]) for program in state["activeapps"])


def living_workers(cluster: LiveCluster, service: str) -> frozenset[str]:
    """The hosts of the workers that the master takes for alive, with their number: a worker that
    was started anew is listed twice until the master gives up the old one. Raises
    MasterUnreachable."""
    workers = _master(cluster, service).state()["workers"]
    alive = Counter(worker["host"] for worker in workers if worker["state"] == "ALIVE")
    return frozenset(f"{host} ({count} times)" for host, count in alive.items())


def _master(cluster: LiveCluster, service: str) -> SparkMaster:
    if (name := f"{service}/master") not in cluster.clients:
        node = cluster.of_role(name)[0]
        cluster.clients[name] = LiveMaster(cluster.address(node, MASTER_UI))
    known: SparkMaster = cluster.clients[name]
    return known
