"""Rules between the faults of the data, the load, and the job that reads it.

Each fault declares the cases in which its expected result is not known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.faults.fault import Fault
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.workload_change import LoadUse
from streamquake.harness.experiment.model import Experiment


def data_problem(fault: Fault, experiment: Experiment) -> Iterator[str]:
    """Why a fault of the data makes no sense in this experiment."""
    if not isinstance(fault, DataFault):
        return
    if not experiment.workload.generated:
        yield (
            f"{fault.name} changes records that are generated, and the workload "
            f"{experiment.workload.name} sends records as they are"
        )
    elif (problem := fault.unknown_result(_use_of(experiment))) is not None:
        yield problem


def _use_of(experiment: Experiment) -> LoadUse:
    job, promise = experiment.job, experiment.promise
    return LoadUse(
        keys=getattr(experiment.workload, "keys", None),
        has_job=job is not None,
        existing_job=job is not None and job.existing is not None,
        lateness_ms=promise.lateness_ms,
        reads_copies=promise.explodes,
    )
