"""What can be taken away from an experiment: one function for each kind, in the order of `PASSES`.

Each takes a candidate that counts, tries smaller ones and returns the smallest that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from streamquake.faults.fault import faults
from streamquake.faults.schedule.exact_target import narrower_targets
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.campaign.shrinking.delta_debugging import ddmin
from streamquake.harness.experiment.document import StepSource
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.workload import workloads
from streamquake.topologies.loader import find_topology
from streamquake.topologies.model import Topology
from streamquake.topologies.parsing import value_at
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document, Place

Counts = Callable[[Candidate], bool]
"""Whether a candidate counts: it fails as the run did, often enough."""
SHORTEST_S = 0.1
"""Durations are not made shorter than this, in seconds."""
HALVED = ("records", "keys")
"""Parameters of a workload that are halved."""
JOB_SETTINGS = ("parallelism", "sink", "transaction_timeout_s")


def fewer_steps(candidate: Candidate, counts: Counts) -> Candidate:
    """Leave steps of the schedule out."""
    positions = range(len(candidate.steps))
    return candidate.with_steps(ddmin(positions, lambda kept: counts(candidate.with_steps(kept))))


def smaller_numbers(candidate: Candidate, counts: Counts) -> Candidate:
    """Halve records, keys and durations, again and again. Keys and durations mostly do not matter,
    so their smallest value is tried first."""
    for place in number_places(candidate):
        least = 1 if place[-1] == "keys" else SHORTEST_S if place[-1] == "for_s" else None
        if least is not None and value_at(candidate.document, place) > least:
            smaller = candidate.with_value(place, least)
            if counts(smaller):
                candidate = smaller
        candidate = _halved(candidate, place, counts)
    return candidate


def number_places(candidate: Candidate) -> Iterator[Place]:
    """The places of the numbers that are halved; records first, since fewer make runs shorter. The
    records of a file stay as they are."""
    ((name, parameters),) = candidate.document["workload"].items()
    if not workloads[name].files:
        yield from (("workload", name, key) for key in HALVED if (parameters or {}).get(key))
    yield from (
        ("faults", n, "for_s") for n, step in enumerate(candidate.faults) if "for_s" in step
    )


def _halved(candidate: Candidate, place: Place, counts: Counts) -> Candidate:
    while True:
        value = value_at(candidate.document, place)
        half = value // 2 if isinstance(value, int) else round(value / 2, 1)
        if half < (1 if isinstance(value, int) else SHORTEST_S) or half >= value:
            return candidate
        if not counts(smaller := candidate.with_value(place, half)):
            return candidate
        candidate = smaller


def fewer_parameters(candidate: Candidate, counts: Counts) -> Candidate:
    """Leave out parameters of faults, of triggers and of the workload, for their defaults."""
    return _fewer(candidate, parameter_places(candidate), counts)


def parameter_places(candidate: Candidate) -> list[Place]:
    """The places of given parameters that have another value by default."""
    return [*_step_parameters(candidate), *_load_parameters(candidate)]


def fewer_job_settings(candidate: Candidate, counts: Counts) -> Candidate:
    """Leave out settings of the job."""
    return _fewer(candidate, job_setting_places(candidate), counts)


def job_setting_places(candidate: Candidate) -> list[Place]:
    """The places of the job's settings that can be left out."""
    job: Mapping[str, Any] = candidate.document.get("job") or {}
    plain = {key: job[key] for key in JOB_SETTINGS if key in job}
    config: list[Place] = [("job", "config", key) for key in job.get("config", {})]
    return [*config, *_given(("job",), plain, Job)]


def fewer_topology_settings(candidate: Candidate, counts: Counts) -> Candidate:
    """Leave out settings of services. Each such candidate needs a cluster of its own."""
    return _fewer(candidate, topology_setting_places(candidate), counts)


def topology_setting_places(candidate: Candidate) -> list[Place]:
    """The places of settings that the shipped topology of the same name does not have."""
    topology = candidate.document["topology"]
    shipped = _shipped_services(topology["name"])
    return [
        ("topology", "services", name, "config", key)
        for name, service in topology["services"].items()
        for key, value in service.get("config", {}).items()
        if value_at(shipped, (name, "config", key)) != value
    ]


def narrower(candidate: Candidate, counts: Counts) -> Candidate:
    """Inject into one node in place of several."""
    topology = Topology.model_validate(candidate.document["topology"])
    for position, step in enumerate(candidate.faults):
        for target in narrower_targets(step["target"], topology):
            if counts(smaller := candidate.with_value(("faults", position, "target"), target)):
                candidate = smaller
                break
    return candidate


PASSES: tuple[Callable[[Candidate, Counts], Candidate], ...] = (
    fewer_steps,
    smaller_numbers,
    fewer_parameters,
    fewer_job_settings,
    fewer_topology_settings,
    narrower,
)


def reductions_left(candidate: Candidate) -> int:
    """How many candidates it takes about to show that nothing more can be taken away."""
    topology = Topology.model_validate(candidate.document["topology"])
    places = (number_places, parameter_places, job_setting_places, topology_setting_places)
    narrow = [
        target for step in candidate.faults for target in narrower_targets(step["target"], topology)
    ]
    return len(candidate.steps) + len(narrow) + sum(len([*of(candidate)]) for of in places)


def smallest(candidate: Candidate, counts: Counts) -> Candidate:
    """All passes, until none of them takes anything away."""
    while True:
        before = candidate
        for reduce in PASSES:
            candidate = reduce(candidate, counts)
        if candidate == before:
            return candidate


def _fewer(candidate: Candidate, places: Sequence[Place], counts: Counts) -> Candidate:
    """The candidate with as few of the keys at these places as possible."""

    def keeping(kept: Sequence[Place]) -> Candidate:
        return candidate.without([place for place in places if place not in kept])

    return keeping(ddmin(places, lambda kept: counts(keeping(kept))))


def _step_parameters(candidate: Candidate) -> Iterator[Place]:
    for n, step in enumerate(candidate.faults):
        name = next(key for key in step if key not in StepSource.model_fields)
        yield from _given(("faults", n, name), step[name] or {}, faults[name])
        yield from _given(("faults", n, "when"), step.get("when", {}), TriggerSpec)


def _load_parameters(candidate: Candidate) -> Iterator[Place]:
    ((name, parameters),) = candidate.document["workload"].items()
    kept = (*HALVED, *workloads[name].files, *workloads[name].describing)
    others = {key: value for key, value in (parameters or {}).items() if key not in kept}
    yield from _given(("workload", name), others, workloads[name])


def _given(at: Place, values: Mapping[str, Any], model: type[BaseModel]) -> Iterator[Place]:
    """The places of values that may be left out, and differ from their defaults. The kind of a
    trigger has no default."""
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for key, value in values.items():
        field = known.get(key)
        if field is None or field.is_required():
            continue
        default = field.get_default(call_default_factory=True, validated_data={})
        if default is None and model is TriggerSpec:
            continue
        if value != default:
            yield (*at, key)


def _shipped_services(name: str) -> Mapping[str, Any]:
    """The services of a shipped topology; none where no topology has the name."""
    try:
        document: Document = find_topology(name)
    except BadInput:
        return {}
    services: Mapping[str, Any] = document.data.get("services", {})
    return services
