"""What must be true between the faults of the data, the load, and the job that reads it.

Each rule is there because the expected result would not be known exactly without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.faults.catalogue.explosion import Explosion
from streamquake.faults.catalogue.late_events import LateEvents
from streamquake.faults.catalogue.poison import Poison
from streamquake.faults.catalogue.skew import SkewKeys
from streamquake.faults.fault import Fault
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.workload import workload_of


def data_trouble(fault: Fault, experiment: Experiment) -> Iterator[str]:
    """Why a fault of the data makes no sense in this experiment."""
    match fault:
        case LateEvents() if (lateness_ms := experiment.promise.lateness_ms) is not None:
            if fault.furthest_ms >= lateness_ms:
                yield (
                    "the job may leave out what is "
                    f"{lateness_ms} ms late (`lateness_ms` in the head of its SQL), and which "
                    "records it does leave out cannot be known; expected late_ms + "
                    f"out_of_order_ms below {lateness_ms}, got {fault.furthest_ms}, or a job "
                    "without windows"
                )
        case Explosion() if not experiment.promise.explodes:
            yield (
                "explosion needs a job that writes a row for each of a record's `copies`, and "
                "the expectation of this one does not speak of them; take explode.sql"
            )
        case Poison() if experiment.job is None:
            yield "poison needs a job that reads it; without a job nothing is disturbed"
        case Poison() if experiment.job is not None and experiment.job.existing is not None:
            yield (
                "poison stays in the topic, and a job that is not the run's own could fail over it "
                "for good; submit the job with the run, or take another disturbance of the data"
            )
        case SkewKeys() if getattr(workload_of(experiment.workload), "keys", 2) < 2:
            yield "skew needs a workload of several keys, got one; raise `keys`"
