"""How the jobs of an experiment depend on each other: which topics each reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

from streamquake.harness.experiment.model import JOB, Experiment, Job


def group_of(run: str, name: str) -> str:
    """`${run}` of a job: its consumer group, and what its transactional ids begin with. Another
    one for each job: two jobs of one group would commit their offsets over each other."""
    return run if name == JOB else f"{run}.{name}"


def topics_read(experiment: Experiment, job: Job) -> tuple[str, ...]:
    """The topics that a job reads."""
    return tuple(experiment.workload.topics()) if job.reads is None else job.reads


def topics_written(job: Job) -> tuple[str, ...]:
    """The topics among the outputs of a job."""
    return tuple(o.kafka for o in job.promise.outputs.values() if o.kafka is not None)


def writers(experiment: Experiment) -> Mapping[str, str]:
    """Topic -> the name of the job that writes it; without the topics of the load."""
    inputs, jobs = experiment.workload.topics(), experiment.jobs.items()
    return {
        topic: name for name, job in jobs for topic in topics_written(job) if topic not in inputs
    }


def reads_of_jobs(experiment: Experiment, name: str) -> tuple[str, ...]:
    """The topics that a job reads and that jobs write."""
    written = writers(experiment)
    return tuple(t for t in topics_read(experiment, experiment.jobs[name]) if t in written)


def drain_order(experiment: Experiment) -> tuple[str, ...]:
    """The names of the jobs, each behind those whose outputs it reads. Raises
    `graphlib.CycleError`."""
    written = writers(experiment)
    sources = {
        name: [written[topic] for topic in reads_of_jobs(experiment, name)]
        for name in experiment.jobs
    }
    return tuple(TopologicalSorter(sources).static_order())
