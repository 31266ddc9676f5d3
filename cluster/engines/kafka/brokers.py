"""The state that the brokers of a Kafka service report: leaders, replicas, the controller,
transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from streamquake.cluster.live_cluster import LiveCluster

OPEN = "Ongoing"
ABORTING = ("PrepareEpochFence", "PrepareAbort")
"""States of a transaction whose abortion is decided and not yet written everywhere."""
ABORTED = "CompleteAbort"


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """A partition as its brokers report it, nodes by number; leader -1 while there is none."""

    topic: str
    number: int
    leader: int
    epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.number}"


@dataclass(frozen=True, kw_only=True)
class Transaction:
    """A transactional id as its coordinator, a broker's number, has it."""

    id: str
    coordinator: int
    state: str
    epoch: int
    timeout_ms: int
    started_ms: int | None = None
    """When its present transaction began, epoch ms; None while it has none."""

    @property
    def name(self) -> str:
        """One transaction's name: the epoch grows when its producer is fenced."""
        return f"{self.id} of epoch {self.epoch}"


class Brokers(Protocol):
    """The queries to the brokers. Every call may raise KafkaUnreachable."""

    def answering(self) -> tuple[int, ...]:
        """The numbers of the brokers that answer by themselves; may be empty."""
        ...

    def partitions(self) -> tuple[PartitionState, ...]: ...

    def controller(self) -> int: ...

    def transactions(self) -> tuple[Transaction, ...]:
        """Every transactional id that a coordinator knows, whether a transaction is open or not."""
        ...

    def every_transaction(self) -> tuple[tuple[Transaction, ...], tuple[str, ...]]:
        """As `transactions`, with more time for each broker that runs; and of each that did not
        answer even so its name and why. What it coordinates is then not among the found."""
        ...

    def expire(self, transaction: Transaction) -> None:
        """Let its coordinator abort an open transaction and fence its producer, as it does by
        itself when the transaction's time is over. Without an open one only the fence is left."""
        ...


def brokers(cluster: LiveCluster, service: str) -> Brokers:
    """The brokers of a service, for queries."""
    if service not in cluster.clients:
        # The library behind it takes a second to import: too long for a command that asks nothing.
        from streamquake.cluster.engines.kafka.broker_requests import LiveBrokers

        cluster.clients[service] = LiveBrokers(cluster, service)
    known: Brokers = cluster.clients[service]
    return known
