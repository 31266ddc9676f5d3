"""What the coordinators know of a run's transactions, recorded twice: after recovery and after the
drain.

A transaction that is open when nobody writes any more holds back what readers of committed records
may see, until its time is over; nothing in the job says so.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import brokers
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.verdict.evidence.transactions import writes_transactions
from streamquake.reports.record.event import Action, Kind


def record_transactions(
    experiment: Experiment, cluster: Cluster, loop: EventLoop, after: Literal["recovery", "drain"]
) -> None:
    """Record every transactional id of the run, and the brokers that did not answer: that is no
    failure.

    Only where a job was asked for an exactly-once sink into Kafka: no other writes in transactions.
    """
    service = experiment.topology.service_of("kafka")
    if service is None or not writes_transactions(experiment):
        return
    asked_ms = cluster.clock.epoch_ms()
    try:
        found, silent = brokers(cluster, service).every_transaction()
    except Exception as error:  # noqa: BLE001 - evidence that could not be had fails no run
        message = str(error) if isinstance(error, KafkaUnreachable) else repr(error)
        loop.record(
            Action.TRANSACTIONS_SEEN,
            kind=Kind.FAIL,
            process=service,
            error=message,
            after=after,
            asked_ms=asked_ms,
            unanswered=message,
        )
        return
    of_run = [asdict(t) for t in found if t.id.startswith(cluster.run.run_id)]
    loop.record(
        Action.TRANSACTIONS_SEEN,
        kind=Kind.OK,
        process=service,
        after=after,
        asked_ms=asked_ms,
        transactions=of_run,
        **({"unanswered": "; ".join(silent)} if silent else {}),
    )
