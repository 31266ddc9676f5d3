"""Rules between the parts of an experiment: each rule yields the problems that break it."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.cluster.engines.engine import engine, engines, job_runner
from streamquake.faults.fault import Fault, faults
from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import TargetChoice, parse_target, roles_of, target_problem
from streamquake.faults.schedule.trigger import referenced_step
from streamquake.harness.experiment.check import ALWAYS_ON, checks
from streamquake.harness.experiment.data_validation import data_problem
from streamquake.harness.experiment.job_placeholders import job_service, runs_jobs
from streamquake.harness.experiment.jobs_validation import broken_job_rules, place_of_job
from streamquake.harness.experiment.model import JOB, Experiment
from streamquake.harness.experiment.restart_validation import config_problem, restart_problem
from streamquake.harness.reconcile.reading.database_address import SERVICE
from streamquake.reports.record.expected_outcome import OUTCOMES, ExpectedOutcome
from streamquake.topologies.model import NodeGroup, Topology
from streamquake.topologies.problems import did_you_mean
from streamquake.topologies.yaml_document import Place

Broken = Iterator[tuple[Place, str]]
"""(place in the experiment, message); a check is placed by its title."""


def broken_rules(experiment: Experiment) -> list[tuple[Place, str]]:
    """The problems between parts that are each well-formed."""
    return [
        *_input(experiment),
        *_own_topic(experiment),
        *_outputs_of_services(experiment),
        *_job_engine(experiment),
        *broken_job_rules(experiment),
        *_job_config(experiment),
        *_slots(experiment),
        *_expectation(experiment),
        *_named_faults(experiment),
        *_records_of_load(experiment),
        *broken_fault_rules(experiment),
    ]


def broken_fault_rules(experiment: Experiment) -> list[tuple[Place, str]]:
    """The problems of a schedule, written or drawn."""
    return [
        *_targets(experiment),
        *_triggers(experiment),
        *_slots_left(experiment),
        *_data_and_restarts(experiment),
    ]


WRITTEN = {
    "nodes": 'write a node, "one of ROLE", "all of ROLE", "all but NODE" or "the DUTY"',
    "links": 'write "link NAME"',
    "pairs": 'write "between NODES and NODES" or "from NODES to NODES"',
    "workload": 'write "the workload"',
    "job": 'write "the job"',
}


def fault_target_problem(fault: Fault | type[Fault], target: str, topology: Topology) -> str | None:
    """Why a fault cannot be injected into a target, written as in YAML, on this topology; None if
    it can."""
    try:
        choice = parse_target(target)
    except ValueError as error:
        return str(error)
    if (message := _external_problem(fault, choice, topology)) is not None:
        return message
    if fault.target_kind != choice.target_kind:
        known = topology.links if fault.target_kind == "links" else topology.roles()
        kind = fault.target_kind
        expected = f'{fault.name} disturbs {kind}, got "{target}"; {WRITTEN[kind]}'
        return f"{expected}; there are: {', '.join(known) or 'none in this topology'}"
    if (problem := target_problem(choice, topology)) is not None:
        return problem
    return next(
        filter(None, (_mismatch(fault, r, topology) for r in roles_of(choice, topology))), None
    )


def _external_problem(
    fault: Fault | type[Fault], choice: TargetChoice, topology: Topology
) -> str | None:
    """Why a fault cannot be injected into an existing service, which Streamquake did not deploy;
    None for a deployed service, or if the fault affects only the load."""
    external = {n: s.endpoint for n, s in topology.services.items() if s.endpoint is not None}
    named = next((name for name in external if f"{name}/" in choice.name), None)
    if fault.target_kind == "job" and (runner := job_service(topology)) in external:
        named = runner
    if fault.target_kind == "workload" or not external or (named is None and topology.nodes()):
        return None
    name = named or next(iter(external))
    data = ", ".join(known for known in faults if faults[known].target_kind == "workload")
    return (
        f"{fault.name} needs a target that Streamquake has deployed and can repair, and {name} at "
        f'{external[name]} is not; disturb the data ({data}; target "the workload"), or deploy '
        f"{name} (`nodes` in place of `endpoint`)"
    )


def _mismatch(fault: Fault | type[Fault], role: str, topology: Topology) -> str | None:
    """Why a fault makes no sense on a role's nodes."""
    service = topology.services.get(role.partition("/")[0])
    if service is None or role not in topology.roles():
        return None  # the topology's own rules report a link to an unknown role
    runs = service.engine
    if fault.target_kind == "nodes" and fault.engines and runs not in fault.engines:
        return f"{fault.name} works on {', '.join(fault.engines)}, and {role} runs {runs}"
    return fault.role_problem(topology, role)


def _records_of_load(experiment: Experiment) -> Broken:
    if experiment.job is None and (problem := experiment.workload.input_problem):
        yield ("workload", experiment.workload.name), problem
    if experiment.workload.generated:
        return
    for check in experiment.checks:
        if check.needs_keys:
            yield (
                ("checks", check.name),
                f"{check.name} finds records by their `key` and `seq`, which only a generated load "
                f"has, and the workload is {experiment.workload.name}",
            )


def _targets(experiment: Experiment) -> Broken:
    for number, step in enumerate(experiment.faults):
        if role_problem := fault_target_problem(
            faults[step.fault], step.target, experiment.topology
        ):
            yield ("faults", number, "target"), role_problem


def _triggers(experiment: Experiment) -> Broken:
    """A step waits only for the effect of an earlier step, so that no two wait for each other, and
    only for a record of the load."""
    for number, step in enumerate(experiment.faults):
        if step.when.effect_of is not None:
            try:
                referenced_step(step.when, experiment.faults[:number])
            except LookupError as error:
                yield ("faults", number, "when", "effect_of"), str(error)
        wanted, planned = step.when.at_record, experiment.workload.planned
        if wanted is not None and planned is not None and wanted >= planned:
            yield (
                ("faults", number, "when", "at_record"),
                f"expected a record from 0 to {planned - 1}, the last of the load, got {wanted}",
            )
        if experiment.job is None and step.target == "the job":
            yield ("faults", number, "target"), "the experiment has no job; declare one"


def _input(experiment: Experiment) -> Broken:
    if experiment.topology.service_of("kafka") is None:
        yield (
            ("topology",),
            f"the workload sends to Kafka, and {experiment.topology.name} has no service of the "
            "engine kafka; add one",
        )


def _own_topic(experiment: Experiment) -> Broken:
    """The load and the jobs write to topics of their own."""
    inputs = experiment.workload.topics()
    for job_name, job in experiment.jobs.items():
        whose = "the job's" if job_name == JOB else f"{job_name}'s"
        for name, output in job.promise.outputs.items():
            if output.kafka in inputs:
                yield (
                    ("workload",),
                    f"the workload sends to the topic {output.kafka}, which is {whose} output "
                    f'"{name}" too; give the workload another `topic`',
                )


def _outputs_of_services(experiment: Experiment) -> Broken:
    """The address of a table or of an object store names a port that a service declares."""
    ports = [
        f"{name}.{port}"
        for name, service in experiment.topology.services.items()
        for port in service.ports
    ]
    outputs = {
        (*place_of_job(job_name), "promise", "outputs", name): output
        for job_name, job in experiment.jobs.items()
        for name, output in job.promise.outputs.items()
    }
    for at, output in outputs.items():
        if output.address is not None:
            key, what, server = "table", "table", output.address.server
        else:
            key, what, server = "endpoint", "objects", output.endpoint or ""
        if (found := SERVICE.search(server)) is None:
            continue
        place, named = (*at, key), found[0][2:-1]
        service = named.partition(".")[0]
        if named in ports and sum(n.service == service for n in experiment.topology.nodes()) > 1:
            yield place, f"{service} has several nodes, and only one of them has the {what}"
        if named not in ports:
            yield (
                place,
                f"no service declares the port ${{{named}}}{did_you_mean(named, ports)}; a service "
                "of the engine container declares `ports`",
            )


def _expectation(experiment: Experiment) -> Broken:
    """`expect` names only checks of the experiment, and only findings that they can report."""
    if isinstance(experiment.expect, str):
        return
    known = {name: checks[name] for name in ALWAYS_ON}
    known |= {check.title: type(check) for check in experiment.checks}
    for name, written in experiment.expect.items():
        place = ("expect", name)
        try:
            words = ExpectedOutcome.of({name: written}).found[name]
        except ValueError as error:
            yield place, str(error)
            continue
        if name not in known:
            yield place, f'the experiment has no check "{name}"{did_you_mean(name, known)}'
            continue
        findable = (*known[name].classes, *OUTCOMES)
        for word in words:
            if word not in findable:
                yield place, f'{name} finds nothing called "{word}"{did_you_mean(word, findable)}'


def _named_faults(experiment: Experiment) -> Broken:
    """A check of one fault names a known fault. Whether the schedule has it is judged after the
    run: a schedule may be drawn, or reduced."""
    for check in experiment.checks:
        fault = getattr(check, "fault", None)
        if fault is not None and fault not in faults:
            message = f'no fault is called "{fault}"{did_you_mean(fault, faults)}'
            yield ("checks", check.title, "fault"), message


def _job_engine(experiment: Experiment) -> Broken:
    if experiment.job is None:
        return
    found = job_runner(experiment.topology)
    services = experiment.topology.services
    follows = found is not None and services[found[0]].endpoint is not None
    if experiment.job.existing is not None:
        yield from _existing_job(experiment, found is None or follows)
        if experiment.job.existing.job is not None and not follows:
            message = "no Flink is followed; give the topology one with an `endpoint`, or remove it"
            yield ("job", "existing", "job"), message
        return
    if found is not None and follows:
        yield (
            ("job",),
            f"no program is submitted to {found[0]}, which runs already; name its job: "
            "`job: {existing: {job: NAME}}`",
        )
        return
    if found is None:
        able = ", ".join(name for name in engines if runs_jobs(name)) or "none"
        yield (
            ("job",),
            f"{experiment.topology.name} has no engine that runs jobs; engines that do: {able}",
        )
        return
    takes, runs = found[1].programs, services[found[0]].engine
    for name, job in experiment.jobs.items():
        given = job.programs()
        if given and not any(kind in takes for kind in given):
            yield (
                place_of_job(name),
                f"{found[0]} runs {runs}, which takes {' or '.join(takes)}, got "
                f"{' and '.join(given)}; give the job as `{takes[0]}: FILE` too, or take another "
                "topology",
            )


def _existing_job(experiment: Experiment, alone: bool) -> Broken:
    """An existing job runs outside the run's own cluster."""
    kafka = experiment.topology.service_of("kafka")
    if kafka is None or experiment.topology.services[kafka].endpoint is None:
        message = "a job that runs already cannot read from a Kafka that is deployed for the run"
        yield ("job", "existing"), f"{message}; give kafka an `endpoint`, or the job as a program"
    elif not alone:
        message = "the topology deploys an engine that runs no job"
        yield (
            ("job", "existing"),
            f"{message}; leave that service out, or give the job as a program",
        )


def _job_config(experiment: Experiment) -> Broken:
    """The problems that the engine finds in the job's settings."""
    service = job_service(experiment.topology)
    if service is None:
        return
    for name, job in experiment.jobs.items():
        for place, message in config_problem(experiment.topology, service, job.config):
            yield (*place_of_job(name), *place), message


def _data_and_restarts(experiment: Experiment) -> Broken:
    for number, step in enumerate(experiment.faults):
        try:
            fault = step.build_fault()
        except ValueError:
            continue  # the parser reports wrong parameters at their place
        problems_found = (*data_problem(fault, experiment), *restart_problem(fault, experiment))
        for role_problem in problems_found:
            yield ("faults", number), role_problem
        change = fault.job_change
        if change is not None and change.parallelism is not None:
            yield from _too_few(experiment, change.parallelism, ("faults", number))


def _slots(experiment: Experiment) -> Broken:
    """The topology has enough slots for the jobs."""
    if experiment.job is not None:
        yield from _too_few(experiment, experiment.job.parallelism, ("job", "parallelism"))


def _too_few(experiment: Experiment, parallelism: int, place: Place) -> Broken:
    workers = job_workers(experiment)
    beside = _slots_beside(experiment)
    needed = parallelism + beside
    if workers and (slots := _slots_of(workers)) < needed:
        others = f" beside {beside} of the other jobs" if beside else ""
        yield (
            place,
            f"{parallelism} parallel tasks{others} need {needed} slots, got {slots} from "
            f"{_offered(workers)}; {MORE_SLOTS}",
        )


def _slots_beside(experiment: Experiment) -> int:
    """The slots that the other jobs take."""
    return sum(job.parallelism for job in experiment.other_jobs.values())


def _slots_left(experiment: Experiment) -> Broken:
    """Enough slots are left for the job's restart if a fault stops nodes until the end."""
    job, workers = experiment.job, job_workers(experiment)
    if job is None or not workers:
        return
    needed, slots = job.parallelism + _slots_beside(experiment), _slots_of(workers)
    for number, step in enumerate(experiment.faults if slots >= needed else ()):
        left = slots - _slots_away(step, workers)
        if left < needed:
            yield (
                ("faults", number),
                f"{step.fault} on {step.target} without `for_s` lasts to the end and leaves {left} "
                f"of {slots} slots, too few to restart {needed} parallel tasks on; "
                f"give `for_s`, or {MORE_SLOTS}",
            )


MORE_SLOTS = "raise `slots` or `count` in the topology, or lower `parallelism`"


def job_workers(experiment: Experiment) -> dict[str, NodeGroup]:
    """The roles that run the tasks of the job -> their nodes."""
    name = job_service(experiment.topology)
    return {} if name is None else _workers(experiment.topology, name)


def _slots_of(workers: dict[str, NodeGroup]) -> int:
    return sum(group.count * (group.slots or 1) for group in workers.values())


def _offered(workers: dict[str, NodeGroup]) -> str:
    return ", ".join(
        f"{role} ({group.count} with {group.slots or 1} each)" for role, group in workers.items()
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
    """Slots that a step removes until the end: it stops the process, and no heal restarts it."""
    if step.for_s is not None or faults[step.fault].touches != "process":
        return 0
    try:
        choice = parse_target(step.target)
    except ValueError:
        return 0  # reported by `_targets`
    role = choice.name.rpartition("-")[0] if choice.how == "node" else choice.name
    group = workers.get(role)
    if group is None:
        return 0
    return (group.count if choice.how == "all of" else 1) * (group.slots or 1)
