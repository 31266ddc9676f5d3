"""The state that the brokers of a Kafka service report: leaders, replicas, the controller,
transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamquake.cluster.live_cluster import LiveCluster

OPEN = "Ongoing"
ABORTING = ("PrepareEpochFence", "PrepareAbort")
"""States of a transaction whose abort is decided and not yet written to all partitions."""
ABORTED = "CompleteAbort"


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """A partition as its brokers report it; nodes by number, leader -1 while there is none."""

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
    """A transactional id as its coordinator reports it; `coordinator` is a broker's number."""

    id: str
    coordinator: int
    state: str
    epoch: int
    timeout_ms: int
    started_ms: int | None = None
    """When its open transaction began, epoch ms; None while it has none."""

    @property
    def name(self) -> str:
        """The name of one transaction: fencing its producer increases the epoch."""
        return f"{self.id} of epoch {self.epoch}"


class Brokers(Protocol):
    """The queries to the brokers. Every call may raise KafkaUnreachable."""

    def answering(self) -> tuple[int, ...]:
        """The numbers of the brokers that answer; may be empty."""
        ...

    def partitions(self) -> tuple[PartitionState, ...]: ...

    def controller(self) -> int: ...

    def transactions(self) -> tuple[Transaction, ...]:
        """Every transactional id that a coordinator knows, with or without an open transaction."""
        ...

    def every_transaction(self) -> tuple[tuple[Transaction, ...], tuple[str, ...]]:
        """As `transactions`, with more time for every broker; and the name and error of every
        broker that did not answer or does not run. Their transactions are missing from the
        result."""
        ...

    def groups(self) -> tuple[str, ...]:
        """The consumer groups of all brokers. Raises KafkaUnreachable also when only some of them
        answer."""
        ...

    def delete_groups(self, names: Sequence[str]) -> None:
        """Delete consumer groups with their offsets; a missing one is ignored."""
        ...

    def changed_settings(self, topics: Sequence[str]) -> tuple[str, ...]:
        """The settings that were changed while the brokers ran: those of brokers and of these
        topics, and the quotas of clients. Raises KafkaUnreachable also when only some brokers
        answer."""
        ...

    def expire(self, transaction: Transaction) -> None:
        """Let the coordinator abort an open transaction and fence its producer, as after the
        transaction's timeout. Without an open transaction it only fences the producer."""
        ...


def brokers(cluster: LiveCluster, service: str) -> Brokers:
    """The brokers of a service, for queries."""
    if service not in cluster.clients:
        # Its library takes a second to import: too long for a command that needs no broker.
        from streamquake.cluster.engines.kafka.broker_requests import LiveBrokers

        cluster.clients[service] = LiveBrokers(cluster, service)
    known: Brokers = cluster.clients[service]
    return known
