"""Whether a run's job writes to Kafka in transactions."""

from __future__ import annotations

from streamquake.harness.experiment.model import Experiment


def writes_transactions(experiment: Experiment) -> bool:
    """Whether the job must write to Kafka in transactions whose ids the run knows."""
    job = experiment.job
    if job is not None and job.existing is not None:
        return False
    kafka = any(output.kafka is not None for output in experiment.promise.outputs.values())
    return kafka and job is not None and job.sink == "exactly-once"
