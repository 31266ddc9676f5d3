"""Remove the residue of a run: none of its records may appear in the topics that the next run
creates.

A cancelled job leaves transactions open. When they time out, minutes later, the coordinator writes
an end marker into every partition *of that name*, even a new one: so they are ended first, which
fences their producers too, and only then the topics are deleted. Consumer groups stay: their names
are the run's own.
"""

from __future__ import annotations

from streamquake.cluster.engines.kafka import admin
from streamquake.cluster.engines.kafka.brokers import ABORTING, OPEN, brokers
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import wait_until

LIMIT_S = 30.0
UNDER_WAY = (OPEN, "PrepareCommit", *ABORTING)


def forget(cluster: LiveCluster, service: str) -> None:
    """End what is open and delete all topics but Kafka's own; returns when both is seen to be done.

    Raises KafkaUnreachable, NotReadyInTime.
    """
    requested = brokers(cluster, service)
    for transaction in requested.transactions():
        if transaction.state == OPEN:
            requested.expire(transaction)

    def open_still() -> str | None:
        under_way = [t.name for t in requested.transactions() if t.state in UNDER_WAY]
        return f"{', '.join(under_way[:3])} not ended" if under_way else None

    def there_still() -> str | None:
        left = admin.topics(cluster, service)
        return f"topics not deleted: {', '.join(left)}" if left else None

    wait_until(open_still, what="transactions ended", limit_s=LIMIT_S, clock=cluster.clock)
    admin.delete_topics(cluster, service, admin.topics(cluster, service))
    wait_until(there_still, what="topics deleted", limit_s=LIMIT_S, clock=cluster.clock)
