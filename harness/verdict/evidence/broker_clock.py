"""Whether a fault moved the clock of a Kafka node: then the brokers' stamps no longer relate to the
run's clock."""

from __future__ import annotations

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.evidence.engine_clock import clock_faults


def broker_clock_moved(case: JudgedRun) -> bool:
    """Whether a fault on the clock was called on a Kafka node. Nodes that are not known, such as
    those in old records, may be such nodes."""
    services = case.experiment.topology.services

    def may_be_broker(node: str) -> bool:
        service = services.get(node.partition("/")[0])
        return service is None or service.engine == "kafka"

    return any(
        event.nodes is None or any(may_be_broker(node) for node in event.nodes)
        for event in clock_faults(case.history)
    )
