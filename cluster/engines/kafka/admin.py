"""Queries to a Kafka service from outside: whether it is complete, and the end offsets of its
topics.

Every call goes through the published HOST listeners and has a deadline. A query without an answer
raises KafkaUnreachable: a missing answer must not be taken for an empty topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AdminClient,
    NewTopic,
    OffsetSpec,
    TopicMetadata,
)

from streamquake.cluster.engines.kafka.connection import KafkaConnection, client_of
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.topologies.errors import ErrorKind, StreamquakeError

HOST_PORT = 9096
"""The container port of the listener that is published on loopback."""
DEADLINE_S = 10.0
POLL_S = 1.0
"""How long one readiness check may take; the next one begins at once."""

INTERNAL_TOPICS = (
    "__cluster_metadata",
    "__consumer_offsets",
    "__share_group_state",
    "__transaction_state",
)
"""The topics of Kafka itself. Any other name may be a user's, also one that begins like these."""
STAMPED_ON_APPEND = {"message.timestamp.type": "LogAppendTime"}
"""With this setting a record's timestamp is the time at which the broker appended it, not the one
that its producer sets."""

LOGIN_FAILED = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_login_errors: dict[KafkaConnection, str] = {}
"""The last error of the login of each client."""
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class KafkaUnreachable(StreamquakeError):
    """The brokers rejected a call or did not answer it in time; the message states which."""

    kind = ErrorKind.CLUSTER_FAILED


class TopicMismatch(StreamquakeError):
    """A topic that a run needs is missing, or differs from what the run needs."""

    kind = ErrorKind.CLUSTER_FAILED


def connection(cluster: LiveCluster, service: str) -> KafkaConnection:
    """How clients on the host connect to the brokers."""
    properties = cluster.topology.services[service].properties
    return KafkaConnection.of(bootstrap(cluster, service), properties)


def bootstrap(cluster: LiveCluster, service: str) -> str:
    """The brokers' addresses on the host, comma-separated."""
    if (endpoint := cluster.topology.services[service].endpoint) is not None:
        return endpoint
    brokers = cluster.of_role(f"{service}/broker")
    return ",".join(cluster.address(node, HOST_PORT) for node in brokers)


def pending(cluster: LiveCluster, service: str) -> str | None:
    """Why not all brokers are present, with an active controller and all replicas in sync; None
    when they are."""
    declared = {node.spec.ordinal for node in cluster.of_role(f"{service}/broker")}
    client = _client(cluster, service)
    try:
        metadata = client.list_topics(timeout=POLL_S)
        if missing := sorted(declared - set(metadata.brokers)):
            return f"not registered yet: {', '.join(f'broker-{number}' for number in missing)}"
        # Any broker answers the query above; only an active controller answers this one.
        probe = NewTopic("streamquake-readiness", num_partitions=1, replication_factor=1)
        for answer in client.create_topics(
            [probe], validate_only=True, operation_timeout=POLL_S, request_timeout=POLL_S
        ).values():
            answer.result(timeout=2 * POLL_S)
    except (KafkaException, TimeoutError) as error:
        return f"no answer from {bootstrap(cluster, service)}: {_reason(error)}"
    return _not_in_sync(metadata.topics)


def external_pending(cluster: LiveCluster, service: str) -> str | None:
    """Why external brokers cannot be queried, or None when they can. Does not check whether they
    are complete."""
    brokers = connection(cluster, service)
    try:
        _client_of(brokers).list_topics(timeout=POLL_S)
    except KafkaException as error:
        return f"no answer from {brokers}: {_login_error(brokers) or _reason(error)}"
    return None


def _not_in_sync(topics: Mapping[str, TopicMetadata]) -> str | None:
    """Partitions without a leader, and those with fewer in-sync replicas than required."""
    partitions = {
        f"{name}/{number}": partition
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
    }
    leaderless = [name for name, partition in partitions.items() if partition.leader < 0]
    if leaderless:
        return f"without a leader: {_first_names(leaderless)}"
    behind = [name for name, p in partitions.items() if set(p.replicas) - set(p.isrs)]
    return f"under-replicated: {_first_names(behind)}" if behind else None


def _first_names(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(sorted(names)[:3]) + more


def create_topics(
    cluster: LiveCluster,
    service: str,
    partitions: Mapping[str, int],
    config: Mapping[str, str] | None = None,
) -> None:
    """Create topics (name -> partitions) and wait until each has a leader for every partition.

    `config` holds settings of these topics, such as `STAMPED_ON_APPEND`. An existing topic keeps
    its settings. Raises KafkaUnreachable.
    """
    if not partitions:
        return
    client = _client(cluster, service)
    copies = min(3, len(cluster.of_role(f"{service}/broker")))
    settings = dict(config or {})
    wanted = [
        NewTopic(name, num_partitions=n, replication_factor=copies, config=settings)
        for name, n in partitions.items()
    ]
    answers = client.create_topics(wanted, operation_timeout=DEADLINE_S, request_timeout=DEADLINE_S)
    for name, answer in answers.items():
        try:
            _result(answer, f"create topic {name}")
        except KafkaUnreachable as error:
            if not _is(error, KafkaError.TOPIC_ALREADY_EXISTS):
                raise


def ends_of_existing(
    cluster: LiveCluster, service: str, wanted: Mapping[str, int | None]
) -> dict[str, dict[int, int]]:
    """Topic -> the end offsets of its partitions now, for topics that the harness did not create.
    `wanted` has the required number of partitions, or None for any. Raises TopicMismatch,
    KafkaUnreachable."""
    existing = topics(cluster, service)
    if missing := [name for name in wanted if name not in existing]:
        raise TopicMismatch(
            f"there is no topic {' or '.join(missing)} at {bootstrap(cluster, service)}; create "
            "them: Streamquake creates no topics in a Kafka that it did not deploy"
        )
    found = {name: end_offsets(cluster, service, name, committed=False) for name in wanted}
    for name, partitions in wanted.items():
        if partitions not in (None, len(found[name])):
            raise TopicMismatch(
                f"the topic {name} has {len(found[name])} partitions, and the load sends to "
                f"{partitions}; give it `partitions: {len(found[name])}`"
            )
    return found


def topics(cluster: LiveCluster, service: str) -> tuple[str, ...]:
    """All topics except Kafka's internal ones, by name. Raises KafkaUnreachable."""
    return topics_at(connection(cluster, service))


def topics_at(brokers: KafkaConnection) -> tuple[str, ...]:
    """As `topics`, for any brokers."""
    try:
        found = _client_of(brokers).list_topics(timeout=DEADLINE_S).topics
    except KafkaException as error:
        raise KafkaUnreachable(f"topics: {_login_error(brokers) or _reason(error)}") from error
    return tuple(sorted(set(found) - set(INTERNAL_TOPICS)))


def delete_topics(cluster: LiveCluster, service: str, names: Sequence[str]) -> None:
    """Delete topics; brokers may apply the deletion after this returns. Raises KafkaUnreachable."""
    if not names:
        return
    answers = _client(cluster, service).delete_topics(
        list(names), operation_timeout=DEADLINE_S, request_timeout=DEADLINE_S
    )
    for name, answer in answers.items():
        _result(answer, f"delete topic {name}")


def end_offsets(
    cluster: LiveCluster, service: str, topic: str, *, committed: bool = True
) -> dict[int, int]:
    """Partition -> the offset a reader may read up to.

    With `committed` it is the last stable offset, the limit for a reader of committed records: an
    open transaction holds it back. Raises KafkaUnreachable.
    """
    return ends_at(connection(cluster, service), topic, committed=committed)


def ends_at(brokers: KafkaConnection, topic: str, *, committed: bool) -> dict[int, int]:
    """As `end_offsets`, for any brokers."""
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    client = _client_of(brokers)
    wanted = dict.fromkeys(_partitions(client, topic), _LATEST)
    answers = client.list_offsets(wanted, isolation_level=level, request_timeout=DEADLINE_S)
    return {
        place.partition: _result(answer, f"end of {topic}/{place.partition}").offset
        for place, answer in answers.items()
    }


def group_offsets(cluster: LiveCluster, service: str, topic: str, group: str) -> dict[int, int]:
    """Partition -> the offset that a consumer group has committed, 0 where it has committed none.

    A Flink source commits when a checkpoint completes. Raises KafkaUnreachable.

    It uses a member's request. The admin request crashes the whole process when the group's
    coordinator is not known yet (confluentinc/librdkafka#5040).
    """
    places = _partitions(_client(cluster, service), topic)
    try:
        found = _member(connection(cluster, service), group).committed(places, timeout=DEADLINE_S)
    except KafkaException as error:
        raise KafkaUnreachable(f"offsets of the group {group}: {_reason(error)}") from error
    return {place.partition: max(place.offset, 0) for place in found}


def _partitions(client: AdminClient, topic: str) -> list[TopicPartition]:
    try:
        found = client.list_topics(topic, timeout=DEADLINE_S).topics[topic]
    except KafkaException as error:
        raise KafkaUnreachable(f"partitions of {topic}: {_reason(error)}") from error
    if found.error is not None:
        raise KafkaUnreachable(f"partitions of {topic}: {found.error.str()}")
    return [TopicPartition(topic, number) for number in found.partitions]


def _result(future: Future[Any], what: str) -> Any:
    try:
        return future.result(timeout=2 * DEADLINE_S)
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnreachable(f"{what}: {_reason(error)}") from error


def _is(error: KafkaUnreachable, code: int) -> bool:
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == code


def _reason(error: Exception) -> str:
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    return "no answer in time"


def _login_error(brokers: KafkaConnection) -> str:
    """What the brokers said of the login of the client, which its calls do not say; empty where it
    did not fail."""
    _client_of(brokers).poll(0)
    return _login_errors.pop(brokers, "")


def _client(cluster: LiveCluster, service: str) -> AdminClient:
    return _client_of(connection(cluster, service))


@lru_cache(maxsize=16)
def _client_of(brokers: KafkaConnection) -> AdminClient:
    # A client has several threads and connections: too many to create five times a second. And
    # destroying one before its answer arrived crashed the whole process in the library.
    # By default the library writes every failed connection to stderr. Connections fail while
    # brokers start, and the reason is returned anyway.
    def keep_login_error(error: KafkaError) -> None:
        if error.code() in LOGIN_FAILED:
            _login_errors[brokers] = error.str()

    settings: dict[str, Any] = {
        **brokers.client_settings(),
        "log_level": 0,
        "reconnect.backoff.max.ms": 500,
        "error_cb": keep_login_error,
    }
    return client_of(AdminClient, settings)


@lru_cache(maxsize=4)
def _member(brokers: KafkaConnection, group: str) -> Consumer:
    """A consumer that queries its group's offsets; it never joins the group, so it causes no
    rebalance."""
    settings = {**brokers.client_settings(), "group.id": group, "log_level": 0}
    return client_of(Consumer, settings)
