"""What runs leave in a Kafka service, and its removal: none of a run's records may appear in the
topics that the next run creates.

A cancelled job leaves transactions open. When they time out, minutes later, the coordinator writes
an end marker into every partition *of that name*, even of a new topic. So the transactions are
ended first, which also fences their producers, and the topics are deleted after that.
"""

from __future__ import annotations

from streamquake.cluster.engines.engine import Contents
from streamquake.cluster.engines.kafka import admin
from streamquake.cluster.engines.kafka.brokers import ABORTING, OPEN, brokers
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import wait_until

LIMIT_S = 30.0
UNDER_WAY = (OPEN, "PrepareCommit", *ABORTING)
TOPICS, GROUPS, TRANSACTIONS = "topics", "consumer groups", "transactions under way"


def contents(cluster: LiveCluster, service: str) -> Contents:
    """The topics except Kafka's internal ones, the consumer groups, and the transactions that have
    not ended. Raises KafkaUnreachable."""
    return {
        TOPICS: frozenset(admin.topics(cluster, service)),
        GROUPS: frozenset(brokers(cluster, service).groups()),
        TRANSACTIONS: frozenset(_under_way(cluster, service)),
    }


def clean(cluster: LiveCluster, service: str, kept: Contents) -> None:
    """End open transactions, then delete the topics and groups that are not in `kept`; returns when
    the brokers report all as done. Raises KafkaUnreachable, NotReadyInTime.
    """
    queries = brokers(cluster, service)
    for transaction in queries.transactions():
        if transaction.state == OPEN:
            queries.expire(transaction)

    def pending_transactions() -> str | None:
        under_way = _under_way(cluster, service)
        return f"{', '.join(under_way[:3])} not ended" if under_way else None

    def pending_topics() -> str | None:
        left = _topics_to_delete(cluster, service, kept)
        return f"topics not deleted: {', '.join(left)}" if left else None

    wait_until(
        pending_transactions, what="transactions ended", limit_s=LIMIT_S, clock=cluster.clock
    )
    admin.delete_topics(cluster, service, _topics_to_delete(cluster, service, kept))
    wait_until(pending_topics, what="topics deleted", limit_s=LIMIT_S, clock=cluster.clock)
    groups = set(queries.groups()) - kept.get(GROUPS, frozenset())
    queries.delete_groups(sorted(groups))


def _under_way(cluster: LiveCluster, service: str) -> list[str]:
    return [t.name for t in brokers(cluster, service).transactions() if t.state in UNDER_WAY]


def _topics_to_delete(cluster: LiveCluster, service: str, kept: Contents) -> list[str]:
    return sorted(set(admin.topics(cluster, service)) - kept.get(TOPICS, frozenset()))
