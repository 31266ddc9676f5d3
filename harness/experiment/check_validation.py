"""Rules between the checks of an experiment, its schedule, its load and its outputs.

A check of a fault or an output that does not exist can only be undecided. A check whose limit
exceeds the number of sent records can only be held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.harness.experiment.check_sql import HISTORY, SENT
from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.problems import did_you_mean

CheckProblems = Iterator[tuple[str, str, str]]
"""(title of the check, parameter, message)"""


def check_problems(experiment: Experiment, *, drawn: bool) -> CheckProblems:
    """The checks that cannot work. The faults of a `drawn` schedule are not known yet."""
    for check in experiment.checks:
        given = check.model_dump(exclude_unset=True)
        if not drawn:
            yield from _unknown_fault(experiment, check.title, given)
        yield from _unknown_output(experiment, check.title, given)
        if check.needs_topic:
            yield from _no_topic(experiment, check.title, given.get("output"))
        yield from _beyond_the_load(experiment, check.title, given)
        if check.queries():
            yield from _relations(experiment, check.title, given)


def _unknown_fault(experiment: Experiment, check: str, params: Mapping[str, Any]) -> CheckProblems:
    wanted, known = params.get("fault"), {step.fault for step in experiment.faults}
    if isinstance(wanted, str) and wanted not in known:
        yield check, "fault", f'the schedule has no "{wanted}"{did_you_mean(wanted, known)}'


def _unknown_output(experiment: Experiment, check: str, params: Mapping[str, Any]) -> CheckProblems:
    wanted, known = params.get("output"), experiment.promise.outputs
    if isinstance(wanted, str) and wanted not in known:
        yield check, "output", f'no output is called "{wanted}"{did_you_mean(wanted, known)}'


def _no_topic(experiment: Experiment, check: str, wanted: Any) -> CheckProblems:
    outputs = experiment.promise.outputs
    topics = [name for name, output in outputs.items() if output.kafka is not None]
    if wanted is None and outputs and not topics:
        no_topic = "and no output is a topic"
    elif wanted in outputs and wanted not in topics:
        no_topic = f"and {wanted} is no topic; topics: {', '.join(topics) or 'none'}"
    else:
        return
    yield check, "output", f"it judges when records were appended to a topic, {no_topic}"


def _relations(experiment: Experiment, check: str, params: Mapping[str, Any]) -> CheckProblems:
    outputs = experiment.promise.outputs
    if taken := [name for name in outputs if name.lower() in (SENT, HISTORY)]:
        message = f'the output "{taken[0]}" has the name of another relation; rename the output'
        yield check, "query", message
    known = {SENT, HISTORY, *outputs}
    for name in params.get("may_be_empty", ()):
        if name not in known:
            yield (
                check,
                "may_be_empty",
                f'no relation is called "{name}"{did_you_mean(name, known)}',
            )


def _beyond_the_load(
    experiment: Experiment, check: str, params: Mapping[str, Any]
) -> CheckProblems:
    workload = experiment.workload
    planned, slack_s = workload.planned, params.get("slack_s")
    if check == "bounded_loss" and isinstance(slack_s, int | float) and slack_s >= workload.seconds:
        yield (
            check,
            "slack_s",
            f"{slack_s:g} s is no less than the {workload.seconds:g} s in which all is sent, so "
            "nothing is sent outside the window",
        )
    if planned is None:
        return
    limit, least = params.get("at_most"), params.get("records")
    if check == "bounded_loss" and isinstance(limit, int) and limit >= planned:
        yield (
            check,
            "at_most",
            f"{limit:,} is all of the {planned:,} records that are sent, so no loss is more",
        )
    hanging = params.get("hanging")
    if check == "transactions" and isinstance(hanging, int) and hanging >= planned:
        yield (
            check,
            "hanging",
            f"expected fewer than the {planned:,} records that are sent, got {hanging:,}: no more "
            "transactions than that hold any",
        )
    if check == "progress" and isinstance(least, int) and least > planned:
        yield check, "records", f"expected at most the {planned:,} that are sent, got {least:,}"
