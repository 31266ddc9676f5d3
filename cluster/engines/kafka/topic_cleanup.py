"""Remove the residue of a run: none of its records may appear in the topics that the next run
creates.

A cancelled job leaves transactions open. When they time out, minutes later, the coordinator writes
an end marker into every partition *of that name*, even of a new topic. So the transactions are
ended first, which also fences their producers, and the topics are deleted after that. Consumer
groups remain: their names contain the run's id.
"""

from __future__ import annotations

from streamquake.cluster.engines.kafka import admin
from streamquake.cluster.engines.kafka.brokers import ABORTING, OPEN, brokers
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import wait_until

LIMIT_S = 30.0
UNDER_WAY = (OPEN, "PrepareCommit", *ABORTING)


def forget(cluster: LiveCluster, service: str) -> None:
    """End open transactions and delete all topics except Kafka's internal ones; returns when the
    brokers report both as done. Raises KafkaUnreachable, NotReadyInTime.
    """
    queries = brokers(cluster, service)
    for transaction in queries.transactions():
        if transaction.state == OPEN:
            queries.expire(transaction)

    def pending_transactions() -> str | None:
        under_way = [t.name for t in queries.transactions() if t.state in UNDER_WAY]
        return f"{', '.join(under_way[:3])} not ended" if under_way else None

    def pending_topics() -> str | None:
        left = admin.topics(cluster, service)
        return f"topics not deleted: {', '.join(left)}" if left else None

    wait_until(
        pending_transactions, what="transactions ended", limit_s=LIMIT_S, clock=cluster.clock
    )
    admin.delete_topics(cluster, service, admin.topics(cluster, service))
    wait_until(pending_topics, what="topics deleted", limit_s=LIMIT_S, clock=cluster.clock)
