"""Rules of an experiment with several jobs: what they read and write, and where they can run."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError
from itertools import combinations

from streamquake.cluster.engines.engine import ReportsTopics, RunsSeveralJobs, job_runner
from streamquake.harness.experiment.job_chain import drain_order, topics_written
from streamquake.harness.experiment.model import JOB, OTHER_JOBS, Experiment
from streamquake.topologies.problems import did_you_mean
from streamquake.topologies.yaml_document import Place


def broken_job_rules(experiment: Experiment) -> Iterator[tuple[Place, str]]:
    """(place, message) of what several jobs cannot be, or cannot read."""
    yield from _others(experiment)
    yield from _one_writer(experiment)
    yield from _unproven_reads(experiment)
    unknown = list(_unknown_topics(experiment))
    yield from unknown or _cycle(experiment)


def place_of_job(name: str) -> Place:
    """Where a document declares a job."""
    return (JOB,) if name == JOB else (OTHER_JOBS, name)


def _others(experiment: Experiment) -> Iterator[tuple[Place, str]]:
    """Other jobs are submitted beside a submitted job, where an engine runs several."""
    if not experiment.other_jobs:
        return
    job, found = experiment.job, job_runner(experiment.topology)
    if job is None:
        yield (OTHER_JOBS,), "the experiment has no `job`, which is the one that is judged"
    elif job.existing is not None:
        yield (OTHER_JOBS,), "they are submitted beside `job`, which already runs elsewhere"
    if found is not None and not isinstance(found[1], RunsSeveralJobs):
        runs = experiment.topology.services[found[0]].engine
        yield (
            (OTHER_JOBS,),
            f"{found[0]} runs {runs}, which runs one program: its driver is one node; take a "
            "topology whose engine runs several jobs, such as flink",
        )
    for name, other in experiment.other_jobs.items():
        if name == JOB:
            yield (OTHER_JOBS, name), f'"{JOB}" is the name of `job`'
        if other.existing is not None:
            message = "a job that already runs is not supported here; give it as a program"
            yield (OTHER_JOBS, name, "existing"), message


def _one_writer(experiment: Experiment) -> Iterator[tuple[Place, str]]:
    """Every place is the output of one job: the records of two could not be told apart."""
    written = [
        (name, output)
        for name, job in experiment.jobs.items()
        for output in job.promise.outputs.values()
    ]
    for (first, one), (name, other) in combinations(written, 2):
        if first == name:
            continue
        if one.place == other.place:
            message = f"{other.place} is an output of {first} and of {name}; rename one of them"
            yield place_of_job(name), message
        elif one.is_in_folder_of(other) or other.is_in_folder_of(one):
            message = (
                f"of the outputs {one.place} of {first} and {other.place} of {name} one is in the "
                "other; rename one of them"
            )
            yield place_of_job(name), message


def _unproven_reads(experiment: Experiment) -> Iterator[tuple[Place, str]]:
    """`reads` is for engines that report what a job really reads: with a topic left out of it, a
    run would count as drained too early."""
    found = job_runner(experiment.topology)
    reported = found is not None and isinstance(found[1], ReportsTopics)
    for name, job in experiment.jobs.items():
        if job.reads is not None and (job.existing is not None or not reported):
            message = "what this job really reads is not known, so that `reads` cannot be verified"
            yield (*place_of_job(name), "reads"), f"{message}; leave it out"


def _unknown_topics(experiment: Experiment) -> Iterator[tuple[Place, str]]:
    """A job reads topics that the load or a job writes; `job` at least one."""
    inputs = experiment.workload.topics()
    known = [*inputs, *(t for job in experiment.jobs.values() for t in topics_written(job))]
    for name, job in experiment.jobs.items():
        place = (*place_of_job(name), "reads")
        if name == JOB and job.reads == ():
            yield place, "`job` must read a topic: what it has read shows when it is drained"
        for topic in job.reads or ():
            if topic not in known:
                message = f"nothing writes the topic {topic}{did_you_mean(topic, known)}"
                yield place, f"{message}; topics that are written: {', '.join(known)}"


def _cycle(experiment: Experiment) -> Iterator[tuple[Place, str]]:
    """No job reads, through others, what it writes itself: it would never have read everything."""
    try:
        drain_order(experiment)
    except CycleError as error:
        names = list(reversed(error.args[1]))
        message = " reads from ".join(names)
        yield (*place_of_job(names[0]), "reads"), f"the jobs read in a circle: {message}"
