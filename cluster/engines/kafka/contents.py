"""What runs leave in a Kafka service, and its removal: none of a run's records may appear in the
topics that the next run creates.

A cancelled job leaves transactions open. When they time out, minutes later, the coordinator writes
an end marker into every partition *of that name*, even of a new topic. So the transactions are
ended first, which also fences their producers, and the topics are deleted after that.
"""

from __future__ import annotations

from streamquake.cluster.engines.engine import Contents
from streamquake.cluster.engines.kafka import admin
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import ABORTING, OPEN, Transaction, brokers
from streamquake.cluster.engines.kafka.log import FOLDER
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.command_retry import run_again_on_failure
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.runtime.waiting import wait_until

LIMIT_S = 30.0
DELETED_S = 60.0
"""A broker with other settings may begin to delete files only 30 s after its start."""
UNDER_WAY = (OPEN, "PrepareCommit", *ABORTING)
TOPICS, GROUPS, TRANSACTIONS = "topics", "consumer groups", "transactions under way"
FOLDERS, SETTINGS = "folders of deleted topics", "changed settings"
LIST_DELETED = ["sh", "-c", 'found=$(ls "$0") || exit; echo "$found" | grep -e "-delete$" || true']
"""Kafka renames the folder of a deleted partition to NAME.ID-delete, and removes it later."""


def contents(cluster: LiveCluster, service: str) -> Contents:
    """The topics except Kafka's internal ones, the folders of deleted ones, the consumer groups,
    the transactions that have not ended, and the settings that were changed while the brokers ran.
    Raises KafkaUnreachable and ContainerError."""
    topics = admin.topics(cluster, service)
    return {
        TOPICS: frozenset(topics),
        FOLDERS: frozenset(_folders_of_deleted(cluster, service)),
        GROUPS: frozenset(brokers(cluster, service).groups()),
        TRANSACTIONS: frozenset(_under_way(cluster, service)),
        SETTINGS: frozenset(brokers(cluster, service).changed_settings(topics)),
    }


def clean(cluster: LiveCluster, service: str, kept: Contents) -> None:
    """End open transactions, then delete the topics and groups that are not in `kept`; returns when
    the brokers report all as done and the files are gone. Raises KafkaUnreachable, ContainerError,
    NotReadyInTime.
    """
    queries = brokers(cluster, service)
    for transaction in all_transactions(cluster, service):
        if transaction.state == OPEN:
            queries.expire(transaction)

    def pending_transactions() -> str | None:
        under_way = _under_way(cluster, service)
        return f"{', '.join(under_way[:3])} not ended" if under_way else None

    def pending_topics() -> str | None:
        left = _topics_to_delete(cluster, service, kept)
        return f"topics not deleted: {', '.join(left)}" if left else None

    def pending_files() -> str | None:
        left = _folders_of_deleted(cluster, service)
        return f"files not deleted: {', '.join(left[:3])}" if left else None

    wait_until(
        pending_transactions, what="transactions ended", limit_s=LIMIT_S, clock=cluster.clock
    )
    admin.delete_topics(cluster, service, _topics_to_delete(cluster, service, kept))
    wait_until(pending_topics, what="topics deleted", limit_s=LIMIT_S, clock=cluster.clock)
    wait_until(pending_files, what="files deleted", limit_s=DELETED_S, clock=cluster.clock)
    groups = set(queries.groups()) - kept.get(GROUPS, frozenset())
    queries.delete_groups(sorted(groups))


def all_transactions(cluster: LiveCluster, service: str) -> tuple[Transaction, ...]:
    """Every transactional id. Raises KafkaUnreachable also when only some brokers answer: what the
    others would have reported is not known."""
    found, unanswered = brokers(cluster, service).every_transaction()
    if unanswered:
        raise KafkaUnreachable(f"transactions: {'; '.join(unanswered)}")
    return found


def _under_way(cluster: LiveCluster, service: str) -> list[str]:
    return [t.name for t in all_transactions(cluster, service) if t.state in UNDER_WAY]


def _folders_of_deleted(cluster: LiveCluster, service: str) -> list[str]:
    """The folders of deleted partitions whose files are still on a broker's disk. Raises
    ContainerError."""
    found = []
    for node in cluster.of_role(f"{service}/broker"):
        argv = [*LIST_DELETED, FOLDER]
        listed = run_again_on_failure(cluster.runtime, node.container, argv)
        if listed.exit_code != 0:
            raise ContainerError(f"{node.name}: its folders were not listed: {listed.output}")
        found += [f"{node.name}: {folder}" for folder in listed.output.split()]
    return found


def _topics_to_delete(cluster: LiveCluster, service: str, kept: Contents) -> list[str]:
    return sorted(set(admin.topics(cluster, service)) - kept.get(TOPICS, frozenset()))
