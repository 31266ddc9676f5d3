"""Records a run's transactions as the coordinators report them: after recovery and after the drain.

A transaction that is still open after the last write holds back read_committed readers until it
times out; the job itself does not report that.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import brokers
from streamquake.harness.experiment.job_chain import group_of
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.verdict.evidence.transactions import writes_transactions
from streamquake.reports.record.event import Action, Kind


def record_transactions(
    experiment: Experiment, cluster: Cluster, loop: EventLoop, after: Literal["recovery", "drain"]
) -> None:
    """Record every transactional id of the run's job, and the unreachable brokers; these do not
    fail the run.

    Only for a job with an exactly-once sink into Kafka: no other job writes in transactions.
    """
    service = experiment.topology.service_of("kafka")
    if service is None or not writes_transactions(experiment):
        return
    requested_ms = cluster.clock.epoch_ms()
    try:
        transactions, unreachable = brokers(cluster, service).every_transaction()
    except Exception as error:  # noqa: BLE001 - missing evidence does not fail the run
        message = str(error) if isinstance(error, KafkaUnreachable) else repr(error)
        loop.record(
            Action.TRANSACTIONS_SEEN,
            kind=Kind.FAIL,
            process=service,
            error=message,
            after=after,
            asked_ms=requested_ms,
            unanswered=message,
        )
        return
    run = cluster.run.run_id
    others = tuple(group_of(run, name) for name in experiment.other_jobs)
    own = [asdict(t) for t in transactions if t.id.startswith(run) and not t.id.startswith(others)]
    loop.record(
        Action.TRANSACTIONS_SEEN,
        kind=Kind.OK,
        process=service,
        after=after,
        asked_ms=requested_ms,
        transactions=own,
        **({"unanswered": "; ".join(unreachable)} if unreachable else {}),
    )
