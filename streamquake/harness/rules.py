"""What must be true between the parts of an experiment: each rule answers with what breaks it."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.cluster.engine import engine, engines
from streamquake.faults.fault import Fault, Step, faults
from streamquake.faults.target import parse_target, target_problem
from streamquake.harness.experiment import Experiment
from streamquake.harness.jobs import job_service, runs_jobs
from streamquake.topologies.model import NodeGroup, Topology
from streamquake.topologies.yaml_document import Place

Broken = Iterator[tuple[Place, str]]
"""(place in the experiment, message)"""


def broken_rules(experiment: Experiment) -> list[tuple[Place, str]]:
    """Everything that cannot work although each part is well-formed."""
    return [
        *_targets(experiment),
        *_input(experiment),
        *_job_engine(experiment),
        *_job_config(experiment),
        *_slots(experiment),
    ]


def target_trouble(fault: Fault | type[Fault], target: str, topology: Topology) -> str | None:
    """Why a fault cannot strike a target, written as in YAML, on this topology; None if it can."""
    try:
        choice = parse_target(target)
    except ValueError as error:
        return str(error)
    if fault.aims == choice.aim:
        return target_problem(choice, topology)
    if fault.aims == "links":
        known = ", ".join(topology.links) or "none in this topology"
        return f'{fault.name} disturbs links, got "{target}"; write "link NAME"; links: {known}'
    known = ", ".join(topology.roles())
    return (
        f'{fault.name} disturbs nodes, got "{target}"; write "one of ROLE", "all of ROLE" or a '
        f"node; roles: {known}"
    )


def _targets(experiment: Experiment) -> Broken:
    for number, step in enumerate(experiment.faults):
        if trouble := target_trouble(faults[step.fault], step.target, experiment.topology):
            yield ("faults", number, "target"), trouble


def _input(experiment: Experiment) -> Broken:
    if experiment.topology.service_of("kafka") is None:
        yield (
            ("topology",),
            f"the workload sends to Kafka, and {experiment.topology.name} has no service of the "
            "engine kafka; add one",
        )


def _job_engine(experiment: Experiment) -> Broken:
    if experiment.job is not None and job_service(experiment.topology) is None:
        able = ", ".join(name for name in engines if runs_jobs(name)) or "none"
        yield (
            ("job",),
            f"{experiment.topology.name} has no engine that runs jobs; engines that do: {able}",
        )


def _job_config(experiment: Experiment) -> Broken:
    """The engine's own judgement of the job's settings, as if the service had them."""
    job, name = experiment.job, job_service(experiment.topology)
    if job is None or name is None:
        return
    service = experiment.topology.services[name]
    trial = service.model_copy(update={"config": job.config})
    services = {**experiment.topology.services, name: trial}
    topology = experiment.topology.model_copy(update={"services": services})
    for place, message in engine(service.engine).problems(topology, name):
        if place[0] == "config":
            yield ("job", *place), message


def _slots(experiment: Experiment) -> Broken:
    """Slots for the job, and for its restart where a fault keeps nodes away until the end."""
    job, name = experiment.job, job_service(experiment.topology)
    if job is None or name is None:
        return
    workers = _workers(experiment.topology, name)
    slots = sum(group.count * (group.slots or 1) for group in workers.values())
    if not workers:
        return
    offered = ", ".join(
        f"{role} ({group.count} with {group.slots or 1} each)" for role, group in workers.items()
    )
    more = "raise `slots` or `count` in the topology, or lower `parallelism`"
    if slots < job.parallelism:
        yield (
            ("job", "parallelism"),
            f"{job.parallelism} parallel tasks need {job.parallelism} slots, got {slots} from "
            f"{offered}; {more}",
        )
        return
    for number, step in enumerate(experiment.faults):
        left = slots - _slots_away(step, workers)
        if left < job.parallelism:
            yield (
                ("faults", number),
                f"{step.fault} on {step.target} without `for_s` lasts to the end and leaves {left} "
                f"of {slots} slots, too few to restart {job.parallelism} parallel tasks on; "
                f"give `for_s`, or {more}",
            )


def _workers(topology: Topology, service: str) -> dict[str, NodeGroup]:
    """The roles of a service whose nodes have slots -> their nodes."""
    declared = topology.services[service]
    worker = getattr(engine(declared.engine), "worker_role", None)
    return {
        f"{service}/{role}": group
        for role, group in declared.nodes.items()
        if role == worker or group.slots is not None
    }


def _slots_away(step: Step, workers: dict[str, NodeGroup]) -> int:
    """Slots that a step takes away for good: nodes without a process, never started again."""
    if step.for_s is not None or faults[step.fault].touches != "process":
        return 0
    try:
        choice = parse_target(step.target)
    except ValueError:
        return 0  # told by `_targets`
    role = choice.name.rpartition("-")[0] if choice.how == "node" else choice.name
    group = workers.get(role)
    if group is None:
        return 0
    return (group.count if choice.how == "all of" else 1) * (group.slots or 1)
