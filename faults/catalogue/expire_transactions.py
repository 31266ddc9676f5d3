"""Expire transactions: the coordinator aborts the open transactions, as if they had timed out."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import ABORTED, ABORTING, OPEN, Transaction, brokers
from streamquake.cluster.engines.kafka.duties import of_prefix
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.requirement import Requirements, one_of, some

OPEN_WITHIN_S = 8.0


@faults.register
class ExpireTransactions(NodeFault):
    """Abort the open transactions that a broker coordinates, and fence their producers. Their
    records are lost to readers of committed records, even if a checkpoint relies on them. The
    effect cannot be undone: heal does nothing."""

    name: ClassVar[str] = "expire_transactions"
    touches: ClassVar[str] = "transactions"
    lasts: ClassVar[bool] = False
    engines: ClassVar[tuple[str, ...]] = ("kafka",)
    drawn: ClassVar[bool] = False
    usual: ClassVar[str] = "the transaction coordinator"

    of: str = ""
    """Prefix of the transactional ids, with or without the run's id in front: `totals`."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        """The open transactions, and the aborted ones. Raises KafkaUnreachable."""
        found = self._coordinated_transactions(cluster, target)
        return {
            "open": [t.name for t in found if t.state == OPEN],
            "aborted": [t.name for t in found if t.state == ABORTED],
        }

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        """Repeat until a transaction is aborted: a sink may commit its transactions at a checkpoint
        before they are expired."""
        called_ns = cluster.clock.epoch_ns()

        def pending() -> str | None:
            nonlocal called_ns
            called_ns = cluster.clock.epoch_ns()
            return self._expire_open(cluster, target)

        with suppress(NotReadyInTime):  # no transaction was open for long; the evidence decides
            wait_until(pending, what="a transaction", limit_s=OPEN_WITHIN_S, clock=cluster.clock)
        return until_now(cluster, called_ns, "coordinator")

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when transactions are aborted that were not aborted before; healed when no
        abort is in progress, because the fault is an event."""
        if cluster.state(target).status == ContainerStatus.EXITED:
            return Evidence(in_effect=False, healed=True, observations={"status": "exited"})
        try:
            found = self._coordinated_transactions(cluster, target)
        except KafkaUnreachable as error:
            return Evidence(in_effect=False, healed=False, observations={"unanswered": str(error)})
        before = baseline.get("aborted", [])
        aborted = [t.name for t in found if t.state == ABORTED and t.name not in before]
        aborting = [t.name for t in found if t.state in ABORTING]
        return Evidence(
            in_effect=bool(aborted),
            healed=not aborting,
            observations={"aborted": aborted, "under_way": aborting},
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"aborted": some()}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"under_way": one_of([])}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        return nothing_done(cluster, "nothing lasts")

    def _expire_open(self, cluster: Cluster, node: Node) -> str | None:
        """Expire the open transactions; returns why none was aborted, or None when one was."""
        found = [t for t in self._coordinated_transactions(cluster, node) if t.state == OPEN]
        if not found:
            return "none is open"
        kafka, ids = brokers(cluster, node.spec.service), {t.id for t in found}
        with ThreadPoolExecutor(max_workers=16) as pool:
            list(pool.map(kafka.expire, found))
        ended = {t.state for t in self._coordinated_transactions(cluster, node) if t.id in ids}
        return None if ended & {ABORTED, *ABORTING} else "all were committed first"

    def _coordinated_transactions(self, cluster: Cluster, node: Node) -> list[Transaction]:
        """The matching ids of the broker. Raises KafkaUnreachable when it does not answer, also if
        others do."""
        found, unanswered = brokers(cluster, node.spec.service).every_transaction()
        if own := [text for text in unanswered if text.startswith(f"{node.name}:")]:
            raise KafkaUnreachable(own[0])
        return [
            transaction
            for transaction in found
            if transaction.coordinator == node.spec.ordinal
            and of_prefix(transaction.id, self.of, cluster.run.run_id)
        ]
