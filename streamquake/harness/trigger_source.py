"""What can be wrong with a trigger as written: names that nothing has."""

from __future__ import annotations

from streamquake.faults.series import known_metrics
from streamquake.faults.step import When
from streamquake.reports.event import Action
from streamquake.topologies.problems import Problem, did_you_mean
from streamquake.topologies.yaml_document import Document, Place


def trigger_problems(document: Document, at: Place, when: When) -> list[Problem]:
    """Events and metrics of a `when` that nobody tells; steps are judged with the schedule."""
    known = [str(action) for action in Action]
    named: list[tuple[Place, str]] = [] if when.event is None else [((*at, "event"), when.event)]
    named += [((*at, "between", n), name) for n, name in enumerate(when.between or ())]
    problems = [
        document.problem(place, f'no event is called "{name}"{did_you_mean(name, known)}')
        for place, name in named
        if name not in known
    ]
    if when.metric is not None and when.metric not in known_metrics():
        said = f'no metric is called "{when.metric}"{did_you_mean(when.metric, known_metrics())}'
        problems.append(document.problem((*at, "metric"), said))
    return problems
