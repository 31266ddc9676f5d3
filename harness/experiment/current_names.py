"""Former names of faults in an experiment, replaced by the current ones."""

from __future__ import annotations

from streamquake.faults.fault import faults
from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.check import Check
from streamquake.harness.experiment.model import Experiment


def with_current_names(experiment: Experiment) -> Experiment:
    """The experiment with every former name replaced; each gives a FutureWarning."""
    steps = tuple(_current_step(step) for step in experiment.faults)
    checks = tuple(_current_check(check) for check in experiment.checks)
    return experiment.model_copy(update={"faults": steps, "checks": checks})


def _current_step(step: Step) -> Step:
    when, earlier = step.when, step.when.effect_of
    if isinstance(earlier, str):
        when = when.model_copy(update={"effect_of": faults.current_name(earlier)})
    return step.model_copy(update={"fault": faults.current_name(step.fault), "when": when})


def _current_check(check: Check) -> Check:
    """Its parameter `fault` names a fault of the schedule."""
    name = getattr(check, "fault", None)
    if not isinstance(name, str):
        return check
    return check.model_copy(update={"fault": faults.current_name(name)})
