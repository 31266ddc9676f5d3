"""What a Spark driver tells of itself, asked over the port that its listener answers on.

The listener (`images/spark/java`) stands in the driver's own process: one that has ended tells
nothing any more, and the one after it begins anew, with another `life`.
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
"""How long an answer may take; the driver itself waits up to a second for something to tell."""

Entry = Mapping[str, Any]


class DriverUnreachable(StreamquakeError):
    """The driver does not answer. `gone` says that nothing listens there: its process has ended,
    or has not come so far; otherwise it may only be slow or cut off."""

    kind = ErrorKind.CLUSTER_FAILED

    def __init__(self, message: str, *, gone: bool) -> None:
        self.gone = gone
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class DriverEvents:
    """What came after some point of a driver's life."""

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
        """The hosts of the executors that are there, one for each."""
        changed = self.later("executor added", "executor removed")
        return () if changed is None else tuple(changed["there"].values())


class SparkDriver(Protocol):
    """What may be asked of a driver. Every call may raise DriverAway."""

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
    """The driver of a service, to be asked."""
    if service not in cluster.clients:
        cluster.clients[service] = LiveDriver(cluster.address(driver_of(cluster, service), NEWS))
    known: SparkDriver = cluster.clients[service]
    return known
