"""Drawing a random schedule for an experiment, by the same rules as for a written schedule."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from streamquake.faults.fault import Fault, faults
from streamquake.faults.schedule.candidates import FaultCandidate, candidates_of
from streamquake.faults.schedule.profiles import PROFILES, Profile, profile_of
from streamquake.faults.schedule.random_schedule import Draw, draw
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.validation import broken_fault_rules, fault_target_problem
from streamquake.reports.record.event import Action
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import did_you_mean

EVENTS = (Action.CHECKPOINT_TRIGGERED, Action.CHECKPOINT_COMPLETED)
"""Events that a drawn step may wait for: they occur in every job that takes checkpoints."""
BEFORE_THE_END_S = 15.0
"""Seconds from the end of a drawn schedule to the end of the load: a fault that takes effect late
is still verified under traffic."""
SHORTEST_S = 4.0
SWARM = PROFILES["swarm"]


def drawn_steps(
    experiment: Experiment, wanted: Draw, rng: random.Random | None = None
) -> tuple[Step, ...]:
    """The steps that the random numbers draw, by default those of the experiment's seed. Raises
    LookupError if no step is possible."""
    profile = profile_of(wanted.profile)
    _known(wanted, profile)
    within_s = min(
        wanted.within_s or profile.within_s,
        experiment.workload.seconds - BEFORE_THE_END_S,
        experiment.limits.trigger_s,
    )
    if within_s < SHORTEST_S:
        raise LookupError(
            f"{within_s:.0f} s are too short for a schedule; it ends {BEFORE_THE_END_S:g} s before "
            "the load does: send longer, or more slowly"
        )
    without = [faults.current_name(name) for name in wanted.without]
    candidates = candidates_for(experiment, profile, without)
    steps = draw(
        profile,
        candidates,
        rng or random.Random(f"{experiment.seed}:draw:{profile.name}"),
        steps=wanted.steps,
        within_s=within_s,
        events=[str(event) for event in EVENTS] if experiment.checkpointed else (),
        allowed=lambda steps: _keeps_the_rules(experiment, steps),
    )
    if not steps:
        raise LookupError(
            f"no fault of the profile {profile.name} makes sense on {experiment.topology.name}"
        )
    return steps


def _known(wanted: Draw, profile: Profile) -> None:
    for name in (*wanted.without, *([profile.only] if profile.only else [])):
        if name not in faults:
            raise LookupError(f'no fault is called "{name}"{did_you_mean(name, faults)}')


def candidates_for(
    experiment: Experiment, profile: Profile = SWARM, without: Collection[str] = ()
) -> list[FaultCandidate]:
    """The faults and targets that the profile allows and that make sense in this experiment. A
    profile of one fault may also remove a role's only node, if there is no other target."""
    topology = experiment.topology
    if profile.only:
        found = _fitting(faults[profile.only], experiment)
        return [c for c in found if not removes_whole_role(c, topology)] or found
    return [
        candidate
        for name, fault in faults.items()
        if fault.drawn and name not in without
        for candidate in _fitting(fault, experiment)
        if not removes_whole_role(candidate, topology)
    ]


def _fitting(fault: type[Fault], experiment: Experiment) -> list[FaultCandidate]:
    example, topology = fault(**fault.example), experiment.topology
    return [
        candidate
        for candidate in candidates_of(fault, topology)
        if fault_target_problem(example, candidate.target, topology) is None
        and _fits(candidate, experiment)
    ]


def removes_whole_role(candidate: FaultCandidate, topology: Topology) -> bool:
    """Whether no node of a role would be left while it is in effect."""
    counts = {
        role: sum(node.role_name == role for node in topology.nodes()) for role in candidate.roles
    }
    return any(count == 1 or candidate.target == f"all of {role}" for role, count in counts.items())


def _fits(candidate: FaultCandidate, experiment: Experiment) -> bool:
    step = Step(
        fault=candidate.fault,
        params=candidate.params,
        target=candidate.target,
        when=TriggerSpec(after_s=0.0),
        for_s=1.0,
    )
    return _keeps_the_rules(experiment, [step])


def _keeps_the_rules(experiment: Experiment, steps: Sequence[Step]) -> bool:
    return not broken_fault_rules(experiment.model_copy(update={"faults": tuple(steps)}))
