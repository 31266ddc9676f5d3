"""The events of a Spark driver, requested over the port of its listener.

The listener (`images/spark/java`) runs in the driver's own process: after the process has ended it
answers nothing, and that of the next process begins again, with another `life`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import requests

from streamquake.cluster.engines.spark.config import NEWS
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.topologies.errors import ErrorKind, StreamquakeError

POLL_S = 5.0
"""How long an answer may take; the driver itself waits up to a second for a new event."""

Entry = Mapping[str, Any]


class DriverUnreachable(StreamquakeError):
    """The driver does not answer. `gone` is True when no process listens: it has ended, or has not
    started so far; otherwise it may only be slow or isolated."""

    kind = ErrorKind.CLUSTER_FAILED

    def __init__(self, message: str, *, gone: bool) -> None:
        self.gone = gone
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class DriverEvents:
    """The events after some point of a driver's life."""

    life: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True)
class DriverState:
    """The last entry of each kind in a driver's life, by its `what`."""

    life: int
    last: Mapping[str, Entry]

    def later(self, *kinds: str) -> Entry | None:
        """The latest entry of these kinds, None where there is none."""
        found = [self.last[kind] for kind in kinds if kind in self.last]
        return max(found, key=lambda entry: int(entry["n"]), default=None)

    @property
    def executors(self) -> tuple[str, ...]:
        """The hosts of the running executors, one entry for each."""
        changed = self.later("executor added", "executor removed")
        return () if changed is None else tuple(changed["there"].values())


class SparkDriver(Protocol):
    """The queries to a driver. Every call may raise DriverUnreachable."""

    def news(self, after: int) -> DriverEvents: ...

    def now(self) -> DriverState: ...


class LiveDriver:
    """A running driver."""

    def __init__(self, address: str) -> None:
        self._address = address

    def news(self, after: int) -> DriverEvents:
        message = self._answer(f"/?after={after}")
        return DriverEvents(life=message["life"], entries=tuple(message["news"]))

    def now(self) -> DriverState:
        message = self._answer("/now")
        return DriverState(life=message["life"], last=message["last"])

    def _answer(self, path: str) -> dict[str, Any]:
        try:
            answer = requests.get(f"http://{self._address}{path}", timeout=POLL_S)
            message: dict[str, Any] = answer.json()
        except requests.RequestException as error:
            gone = isinstance(error, requests.ConnectionError) and not isinstance(
                error, requests.Timeout
            )
            no_answer = f"the driver does not answer: {type(error).__name__}"
            raise DriverUnreachable(no_answer, gone=gone) from error
        return message


def driver_of(cluster: LiveCluster, service: str) -> Node:
    return cluster.of_role(f"{service}/driver")[0]


def driver(cluster: LiveCluster, service: str) -> SparkDriver:
    """The driver of a service, for queries."""
    if service not in cluster.clients:
        cluster.clients[service] = LiveDriver(cluster.address(driver_of(cluster, service), NEWS))
    known: SparkDriver = cluster.clients[service]
    return known
