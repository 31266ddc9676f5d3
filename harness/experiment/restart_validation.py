"""Rules between a restart from state and the job that is restarted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.cluster.engines.engine import RestartsFromState, engine
from streamquake.faults.fault import Fault, JobChange
from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.job_placeholders import job_service, placeholders
from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import BadInput
from streamquake.topologies.templates import render


def restart_problem(fault: Fault, experiment: Experiment) -> Iterator[str]:
    """Why the job of this experiment cannot be restarted by this fault."""
    job, service, change = experiment.job, job_service(experiment.topology), fault.job_change
    if change is None or job is None or service is None:
        return
    runs = engine(experiment.topology.services[service].engine)
    if isinstance(runs, RestartsFromState):
        role_problem = runs.retained_state_problem(
            experiment.topology, service, job.config, change.keeping
        )
        yield from [] if role_problem is None else [role_problem]
    for (_, key), message in config_problem(experiment.topology, service, change.config):
        yield f"`config`, {key}: {message}"
    yield from _statement_problem(change, experiment)


def whole_params(step: Step) -> Mapping[str, Any]:
    """The parameters of a step, with the text of the user's own statements in place of the file
    name, so that a recorded plan is complete. Shipped statements keep their name. Raises
    UnknownName or pydantic's ValidationError."""
    return {**step.params, **step.build_fault().statement_texts()}


def config_problem(
    topology: Topology, name: str, config: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, str], str]]:
    """The problems that the engine finds in a job's settings, validated as settings of the
    service: (place, message)."""
    service = topology.services[name]
    services = {**topology.services, name: service.model_copy(update={"config": config})}
    trial = topology.model_copy(update={"services": services})
    for place, message in engine(service.engine).problems(trial, name):
        if place[0] == "config":
            yield (place[0], place[1]), message


def _statement_problem(change: JobChange, experiment: Experiment) -> Iterator[str]:
    """Replacement statements may use the placeholders of the job's own statements."""
    job, text = experiment.job, change.statements
    if job is None or text is None:
        return
    if job.sql is None:
        yield "`sql` needs a job of statements; this one is a jar"
        return
    try:
        render(text, placeholders(experiment, "run"), change.source)
    except BadInput as error:
        yield from (str(problem) for problem in error.problems)
