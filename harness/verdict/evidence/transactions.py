"""Whether a run's job writes to Kafka in transactions, and to which partitions."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.experiment.model import Experiment


def writes_transactions(experiment: Experiment) -> bool:
    """Whether the job must write to Kafka in transactions whose ids the run knows."""
    job = experiment.job
    if job is not None and job.existing is not None:
        return False
    kafka = any(output.kafka is not None for output in experiment.promise.outputs.values())
    return kafka and job is not None and job.sink == "exactly-once"


def partitions_of_outputs(experiment: Experiment) -> Iterator[str]:
    """The partitions of the outputs in Kafka, named as their samples are: OUTPUT/NUMBER."""
    promise = experiment.promise
    for name, output in promise.outputs.items():
        if output.kafka is not None:
            yield from (f"{name}/{number}" for number in range(promise.partitions))
