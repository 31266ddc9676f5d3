"""Queries to running brokers.

The client library that is used elsewhere (librdkafka) has no calls for the quorum and for
transactions, so kafka-python is used. Every running broker is queried separately, with its own
deadline, so that one that hangs or is isolated does not block the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    ConcurrentTransactionsError,
    KafkaError,
    NoError,
    for_code,
)
from kafka.protocol.admin.client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafka.protocol.producer import InitProducerIdRequest

from streamquake.cluster.engines.kafka.admin import HOST_PORT, KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import PartitionState, Transaction
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus

POLL_MS = 1_500
PATIENT_MS = 5_000
"""For queries that must not miss a slow broker, such as one on a busy machine."""

GROUP_DELETED = ("OK", "GroupIdNotFoundError")
"""Answers of the library to the deletion of a group."""
T = TypeVar("T")


class LiveBrokers:
    """The brokers of a running service, through their published ports."""

    def __init__(self, cluster: LiveCluster, service: str) -> None:
        self._cluster = cluster
        self._service = service

    def answering(self) -> tuple[int, ...]:
        try:
            return tuple(sorted(self._query_each(lambda client, number: number)))
        except KafkaUnreachable:
            return ()

    def partitions(self) -> tuple[PartitionState, ...]:
        """Of two answers on a partition the one with the higher leader epoch counts, then the one
        with fewer in-sync replicas."""
        found: dict[str, PartitionState] = {}
        for answer in self._query_each(_partitions):
            for partition in answer:
                other = found.setdefault(partition.name, partition)
                if _rank(partition) > _rank(other):
                    found[partition.name] = partition
        return tuple(found[name] for name in sorted(found))

    def controller(self) -> int:
        leaders = self._query_each(_quorum_leader)
        return max(leaders)[1]

    def transactions(self) -> tuple[Transaction, ...]:
        return _by_id(self._query_each(_transactions))

    def every_transaction(self) -> tuple[tuple[Transaction, ...], tuple[str, ...]]:
        answers, failed = self._answers(_transactions, PATIENT_MS)
        return _by_id(answers), tuple(failed)

    def groups(self) -> tuple[str, ...]:
        return self._union("consumer groups", _groups)

    def delete_groups(self, names: Sequence[str]) -> None:
        if not names:
            return
        address = self._cluster.address(self._running()[0], HOST_PORT)
        try:
            with _client(address, PATIENT_MS) as client:
                answers = client.delete_groups(list(names))
        except (KafkaError, OSError) as error:
            raise KafkaUnreachable(f"groups not deleted: {type(error).__name__} {error}") from error
        failed = [f"{name}: {what}" for name, what in answers.items() if what not in GROUP_DELETED]
        if failed:
            raise KafkaUnreachable(f"groups not deleted: {'; '.join(failed)}")

    def changed_settings(self, topics: Sequence[str]) -> tuple[str, ...]:
        return self._union(
            "changed settings",
            lambda client, broker: (
                *_changed_settings(client, broker, topics),
                *_client_quotas(client, broker),
            ),
        )

    def expire(self, transaction: Transaction) -> None:
        name = f"{self._service}/broker-{transaction.coordinator}"
        address = self._cluster.address(self._cluster.node(name), HOST_PORT)
        try:
            with _client(address) as client:
                _init_producer_id(client, transaction)
        except (KafkaError, OSError) as error:
            message = f"{transaction.id} could not be expired"
            raise KafkaUnreachable(f"{message}: {type(error).__name__} {error}") from error

    def _running(self) -> list[Node]:
        nodes = self._cluster.of_role(f"{self._service}/broker")
        return [n for n in nodes if self._cluster.state(n).status == ContainerStatus.RUNNING]

    def _union(
        self, what: str, query: Callable[[KafkaAdminClient, int], Sequence[str]]
    ) -> tuple[str, ...]:
        """The names in the answers of all brokers. Raises KafkaUnreachable when one is missing."""
        answers, failed = self._answers(query, PATIENT_MS)
        if failed:
            raise KafkaUnreachable(f"{what}: {'; '.join(failed)}")
        return tuple(sorted({name for answer in answers for name in answer}))

    def _query_each(self, query: Callable[[KafkaAdminClient, int], T]) -> list[T]:
        """The answers of all brokers that respond. Raises KafkaUnreachable when none does."""
        return self._answers(query, POLL_MS)[0]

    def _answers(
        self, query: Callable[[KafkaAdminClient, int], T], within_ms: int
    ) -> tuple[list[T], list[str]]:
        """The answers, and the errors of the brokers that gave none. Raises KafkaUnreachable when
        there is no answer."""
        answers: list[T] = []
        running = self._running()
        nodes = self._cluster.of_role(f"{self._service}/broker")
        failed = [f"{node.name}: does not run" for node in nodes if node not in running]

        def query_one(node: Node) -> None:
            try:
                with _client(self._cluster.address(node, HOST_PORT), within_ms) as client:
                    answers.append(query(client, node.spec.ordinal))
            except (KafkaError, OSError) as error:
                failed.append(f"{node.name}: {type(error).__name__} {error}".strip())

        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(query_one, running))
        if not answers:
            raise KafkaUnreachable("; ".join(failed) or f"{self._service} has no broker")
        return answers, failed


@contextmanager
def _client(address: str, within_ms: int = POLL_MS) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(
        bootstrap_servers=address, request_timeout_ms=within_ms, bootstrap_timeout_ms=within_ms
    )
    try:
        yield client
    finally:
        client.close()


def _rank(partition: PartitionState) -> tuple[int, int]:
    return partition.epoch, -len(partition.in_sync)


def _partitions(client: KafkaAdminClient, broker: int) -> tuple[PartitionState, ...]:
    return tuple(
        PartitionState(
            topic=topic["name"],
            number=partition["partition_index"],
            leader=partition["leader_id"],
            epoch=partition["leader_epoch"],
            replicas=tuple(partition["replica_nodes"]),
            in_sync=tuple(partition["isr_nodes"]),
        )
        for topic in client.describe_topics()
        for partition in topic["partitions"]
    )


def _quorum_leader(client: KafkaAdminClient, broker: int) -> tuple[int, int]:
    (topic,) = client.describe_metadata_quorum()["topics"]
    (partition,) = topic["partitions"]
    return partition["leader_epoch"], partition["leader_id"]


def _groups(client: KafkaAdminClient, broker: int) -> tuple[str, ...]:
    return tuple(group["group_id"] for group in client.list_groups(broker_ids=[broker]))


def _changed_settings(
    client: KafkaAdminClient, broker: int, topics: Sequence[str]
) -> tuple[str, ...]:
    """The settings of a broker, and of topics, that are not from its file or a default."""
    resources = [
        ConfigResource(ConfigResourceType.BROKER, str(broker)),
        *(ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics),
    ]
    described = client.describe_configs(resources, config_filter="all")
    return tuple(
        f"{kind} {name}: {key}={setting['value']}"
        for kind, named in described.items()
        for name, settings in named.items()
        for key, setting in settings.items()
        if setting["config_source"].startswith("DYNAMIC")
    )


def _client_quotas(client: KafkaAdminClient, broker: int) -> tuple[str, ...]:
    manager = client._manager  # the library has no public call for quotas

    async def send() -> DescribeClientQuotasResponse:
        request = DescribeClientQuotasRequest(components=[], strict=False)
        response: DescribeClientQuotasResponse = await manager.send(request, node_id=broker)
        return response

    response = manager.run(send)
    if (error := for_code(response.error_code)) is not NoError:
        raise error(response.error_message)
    return tuple(
        f"quota of {' '.join(f'{e.entity_type} {e.entity_name}' for e in entry.entity)}: "
        f"{value.key}={value.value}"
        for entry in response.entries or ()
        for value in entry.values
    )


def _transactions(client: KafkaAdminClient, broker: int) -> tuple[Transaction, ...]:
    listed = client.list_transactions(broker_ids=[broker])[broker]
    described: dict[str, Any] = client.describe_transactions([t.transactional_id for t in listed])
    return tuple(
        Transaction(
            id=name,
            coordinator=broker,
            state=description.state.value,
            epoch=description.producer_epoch,
            timeout_ms=description.transaction_timeout_ms,
            # Kafka's TransactionMetadata has -1 where no transaction was begun.
            started_ms=start if (start := description.transaction_start_time_ms) >= 0 else None,
        )
        for name, description in described.items()
    )


def _by_id(answers: Iterable[tuple[Transaction, ...]]) -> tuple[Transaction, ...]:
    return tuple(sorted((t for answer in answers for t in answer), key=lambda t: t.id))


def _init_producer_id(client: KafkaAdminClient, transaction: Transaction) -> None:
    """Send InitProducerId for the id once, as a new producer would. The coordinator then aborts the
    open transaction as after a timeout, and answers that transactions are concurrent. A repeated
    request would get the id and change its recorded state."""
    manager = client._manager  # the library has no public way to send an own request

    async def send() -> int:
        request = InitProducerIdRequest(
            transactional_id=transaction.id,
            transaction_timeout_ms=transaction.timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        code: int = (await manager.send(request, node_id=transaction.coordinator)).error_code
        return code

    error = for_code(manager.run(send))
    if error not in (NoError, ConcurrentTransactionsError):
        raise error(transaction.id)
