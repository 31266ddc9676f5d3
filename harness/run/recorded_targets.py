"""The targets of a recorded run: what each injection was called on."""

from __future__ import annotations

from streamquake.faults.schedule.exact_target import bound_target
from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import parse_target
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.fault_events import FaultCalled
from streamquake.reports.record.history import History
from streamquake.topologies.model import Topology


def with_drawn_targets(experiment: Experiment, history: History) -> Experiment:
    """The experiment with the nodes that the run drew for `one of ROLE` in its targets. A draw
    depends on the place of its step in the schedule, so it would change without earlier steps."""
    steps = []
    for number, step in enumerate(experiment.faults):
        called = next((e for e in history.of(FaultCalled) if e.step == number), None)
        is_drawn = called is not None and is_drawn_from_seed(step.target)
        steps.append(bound_step(step, called, experiment.topology) if called and is_drawn else step)
    return experiment.model_copy(update={"faults": tuple(steps)})


def is_drawn_from_seed(target: str) -> bool:
    """Whether a target, or an end of it, is chosen by the random numbers of the run."""
    choice = parse_target(target)
    return any(each.how == "one of" for each in (choice, *choice.ends))


def bound_step(step: Step, called: FaultCalled, topology: Topology) -> Step:
    """The step with exactly the targets of its injection. Raises LookupError where no target
    matches exactly these."""
    target = bound_target(step.target, tuple(called.nodes or ()), topology)
    return step.model_copy(update={"target": target})
