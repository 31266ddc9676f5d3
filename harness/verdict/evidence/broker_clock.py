"""Whether a fault moved the clock of a Kafka node: then the brokers' stamps no longer relate to the
run's clock."""

from __future__ import annotations

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.evidence.engine_clock import clock_faults
from streamquake.reports.record.fault_events import FaultCalled


def broker_clock_moved(case: JudgedRun) -> bool:
    """Whether a fault on the clock was called on a Kafka node."""
    return any(acts_on_broker(case, event) for event in clock_faults(case.history))


def acts_on_broker(case: JudgedRun, call: FaultCalled) -> bool:
    """Whether a fault was called on a Kafka node. Nodes that are not known, such as those in old
    records, may be such nodes."""
    services = case.experiment.topology.services

    def may_be_broker(node: str) -> bool:
        service = services.get(node.partition("/")[0])
        return service is None or service.engine == "kafka"

    return call.nodes is None or any(map(may_be_broker, call.nodes))
