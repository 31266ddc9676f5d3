"""Failures that name an attempt of a task, or its host, other than its events show.

Flink names the attempt that failed and where it ran, which may be that of a consumer in place of
the one of its producer that was killed. Each of the two is compared with the events of the named
task itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from streamquake.harness.verdict.evidence.affected_subtasks import TASK
from streamquake.harness.verdict.evidence.attempt_contradictions import attempts_of, node_of
from streamquake.harness.verdict.evidence.engine_clock import clock_moved
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobFailing, TaskChanged


def contradicted_failures(history: History) -> Iterator[str]:
    """A message for each failure of an attempt that its task had not reached or had left, or at the
    host of another node. None of a job whose attempts were counted anew, so that a number is not
    that of one attempt, and none by stamps where a fault moved the clocks."""
    subtasks = attempts_of(history)
    nodes = {node for events in subtasks.values() for each in events if (node := node_of(each))}
    unclear = {job for (job, *_), events in subtasks.items() if _counted_anew(events)}
    tasks = defaultdict[tuple[str | None, str, int], list[Sequence[TaskChanged]]](list)
    for (job, _, subtask), events in subtasks.items():
        tasks[job, events[0].name, subtask].append(events)
    for failure in history.of(JobFailing):
        named = TASK.fullmatch(failure.task or "")
        if named is None or named["attempt"] is None or failure.job in unclear:
            continue
        own = tasks.get((failure.job, named["name"], int(named["ordinal"]) - 1), [])
        if len(own) != 1:
            continue
        task, attempt = own[0], int(named["attempt"])
        reason = (
            _not_reached(task, attempt, failure)
            or ("" if clock_moved(history) else _left(task, attempt, failure))
            or _elsewhere(task, attempt, failure, nodes)
        )
        if reason:
            where = f"{task[0].name} ({task[0].subtask})"
            yield f"attempt {attempt} of {where} failed at {failure.at_s:.1f} s, {reason}"


def _counted_anew(events: Sequence[TaskChanged]) -> bool:
    """Whether a subtask was deployed twice in one attempt, or after one with a higher number."""
    deployed = list(dict.fromkeys((e.attempt, e.deployed_ms) for e in events if e.deployed_ms > 0))
    numbers = [attempt for attempt, _ in deployed]
    return numbers != sorted(set(numbers))


def _not_reached(task: Sequence[TaskChanged], attempt: int, failure: JobFailing) -> str:
    later = next((event for event in task if event.index > failure.index), None)
    if later is None or later.attempt >= attempt:
        return ""
    return f"and after it the task was seen in attempt {later.attempt}"


def _left(task: Sequence[TaskChanged], attempt: int, failure: JobFailing) -> str:
    """The JobManager stamps both, and deploys the next attempt after the failure."""
    for event in task:
        if event.attempt > attempt and 0 < event.deployed_ms < (failure.failed_ms or 0):
            return f"by its stamp after attempt {event.attempt} was deployed"
    return ""


def _elsewhere(
    task: Sequence[TaskChanged], attempt: int, failure: JobFailing, nodes: Iterable[str]
) -> str:
    """The host of a node that Streamquake started has the node's name in its own. A host that has
    that of no node proves nothing."""
    host = (failure.endpoint or "").partition(":")[0]
    named = {node for node in nodes if _has_name(host, node)}
    ran_on = {node for event in task if event.attempt == attempt and (node := node_of(event))}
    if not named or not ran_on or named & ran_on:
        return ""
    return f"on {', '.join(sorted(named))} by its host, and ran on {', '.join(sorted(ran_on))}"


def _has_name(host: str, node: str) -> bool:
    name = re.escape(node.replace("/", "-"))
    return re.search(rf"(?<![^-]){name}(?!\w)", host) is not None
