"""The problems of a trigger in a document: unknown events and metrics, impossible orders."""

from __future__ import annotations

from streamquake.faults.schedule.metric_series import known_metrics
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.reports.record.event import Action
from streamquake.topologies.problems import Problem, did_you_mean
from streamquake.topologies.yaml_document import Document, Place

STEPS = (
    Action.CHECKPOINT_TRIGGERED,
    Action.CHECKPOINT_ACKNOWLEDGED,
    Action.CHECKPOINT_ALL_ACKNOWLEDGED,
    Action.CHECKPOINT_COMPLETED,
)
"""The events of one checkpoint, in their order."""
LAST = (Action.CHECKPOINT_FAILED,)
"""Events that no other event of the same checkpoint follows."""
AT_THE_END = (
    Action.RECORDS_DROPPED,
    Action.DRAINED,
    Action.NOT_RECOVERED,
    Action.INPUT_NOT_READ,
    Action.OUTPUTS_NOT_COMMITTED,
    Action.OUTPUTS_NOT_QUIET,
    Action.COMMAND_ENDED,
)
"""Events that occur only after the end of the schedule."""


def trigger_problems(document: Document, at: Place, when: TriggerSpec) -> list[Problem]:
    """The unknown events and metrics of a `when`; `effect_of` is validated with the schedule."""
    known = [str(action) for action in Action]
    named: list[tuple[Place, str]] = [] if when.event is None else [((*at, "event"), when.event)]
    named += [((*at, "between", n), name) for n, name in enumerate(when.between or ())]
    problems = [
        document.problem(place, f'no event is called "{name}"{did_you_mean(name, known)}')
        for place, name in named
        if name not in known
    ]
    problems += [document.problem(at, message) for message in _never(when)]
    if when.metric is not None and when.metric not in known_metrics():
        message = f'no metric is called "{when.metric}"{did_you_mean(when.metric, known_metrics())}'
        problems.append(document.problem((*at, "metric"), message))
    return problems


def _never(when: TriggerSpec) -> list[str]:
    """Why a trigger of known events can never fire, or its window never close."""
    awaited = when.event or (when.between or ("",))[0]
    if awaited in AT_THE_END:
        return [f'"{awaited}" occurs after all faults are healed, so no fault can wait for it']
    first, second = when.between or ("", "")
    if first in LAST or (first in STEPS and second in STEPS[: STEPS.index(Action(first))]):
        return [f'"{second}" never follows "{first}" of one checkpoint; swap them']
    return []
