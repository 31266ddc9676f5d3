"""The events of a Spark driver, requested from the port of its listener.

The listener (`images/spark/java`) runs in the driver's process and ends with it. The listener of
the next process begins again, with another `life`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import requests

from streamquake.cluster.engines.spark.config import LISTENER
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.topologies.errors import ErrorKind, StreamquakeError

POLL_S = 5.0
"""How long an answer may take; the driver itself waits up to a second for a new event."""

Entry = Mapping[str, Any]


class DriverUnreachable(StreamquakeError):
    """The driver does not answer. `not_listening` is True when no process listens: it has ended or
    not started yet; otherwise it may only be slow or isolated."""

    kind = ErrorKind.CLUSTER_FAILED

    def __init__(self, message: str, *, not_listening: bool) -> None:
        self.not_listening = not_listening
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class DriverEvents:
    """The events of one driver process after a position; `life` identifies the process."""

    life: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True)
class DriverState:
    """The last entry of each kind from one driver process, by its `what`."""

    life: int
    last: Mapping[str, Entry]

    def latest(self, *kinds: str) -> Entry | None:
        """The latest entry of these kinds, or None."""
        found = [self.last[kind] for kind in kinds if kind in self.last]
        return max(found, key=lambda entry: int(entry["n"]), default=None)

    @property
    def executors(self) -> tuple[str, ...]:
        """The hosts of the running executors, one per executor."""
        changed = self.latest("executor added", "executor removed")
        return () if changed is None else tuple(changed["there"].values())


class SparkDriver(Protocol):
    """The queries to a driver. Every call may raise DriverUnreachable."""

    def events(self, after: int) -> DriverEvents: ...

    def now(self) -> DriverState: ...


class LiveDriver:
    """A running driver."""

    def __init__(self, address: str) -> None:
        self._address = address

    def events(self, after: int) -> DriverEvents:
        answer = self._answer(f"/?after={after}")
        return DriverEvents(life=answer["life"], entries=tuple(answer["news"]))

    def now(self) -> DriverState:
        answer = self._answer("/now")
        return DriverState(life=answer["life"], last=answer["last"])

    def _answer(self, path: str) -> dict[str, Any]:
        try:
            with loopback_session() as session:
                response = session.get(f"http://{self._address}{path}", timeout=POLL_S)
                answer: dict[str, Any] = response.json()
        except requests.RequestException as error:
            not_listening = isinstance(error, requests.ConnectionError) and not isinstance(
                error, requests.Timeout
            )
            no_answer = f"the driver does not answer: {type(error).__name__}"
            raise DriverUnreachable(no_answer, not_listening=not_listening) from error
        return answer


def driver_of(cluster: LiveCluster, service: str) -> Node:
    return cluster.of_role(f"{service}/driver")[0]


def driver(cluster: LiveCluster, service: str) -> SparkDriver:
    """The driver of a service, for queries."""
    if service not in cluster.clients:
        cluster.clients[service] = LiveDriver(
            cluster.address(driver_of(cluster, service), LISTENER)
        )
    known: SparkDriver = cluster.clients[service]
    return known
