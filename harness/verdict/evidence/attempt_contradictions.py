"""Attempts of a subtask that cannot be true together: an attempt stays on its node, and the numbers
of attempts only fall where another JobManager counts anew, which restarts the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamquake.harness.verdict.evidence.engine_clock import clock_moved
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestarting, TaskChanged

SAME_POLL_NS = 5 * 10**9
"""A poll may report the tasks of another JobManager just before the next one reports its
restart."""
Place = tuple[str | None, str, int]
"""A job, a vertex and the number of one of its subtasks."""


def attempts_of(history: History) -> dict[Place, list[TaskChanged]]:
    """The events of each subtask of each job, in their order."""
    found: dict[Place, list[TaskChanged]] = {}
    for event in history.of(TaskChanged):
        found.setdefault((event.job, *event.place), []).append(event)
    return found


def contradicted_attempts(history: History) -> Iterator[str]:
    """A message for each attempt that is recorded on two nodes, and for each subtask that goes back
    to an earlier attempt without a restart of its job. The stamp of a restart shows nothing where a
    fault moved the clocks."""
    for events in attempts_of(history).values():
        yield from _on_two_nodes(events)
        if not clock_moved(history):
            yield from _earlier_attempts(events, history)


def node_of(event: TaskChanged) -> str:
    """The node of an attempt; empty where it is on none, or where the record has the engine's own
    name of a TaskManager instead, which has no slash."""
    return event.node if event.node and "/" in event.node else ""


def _on_two_nodes(events: Sequence[TaskChanged]) -> Iterator[str]:
    nodes: dict[tuple[int, float], str] = {}
    for event in events:
        if not (node := node_of(event)) or event.deployed_ms <= 0:
            continue
        first = nodes.setdefault((event.attempt, event.deployed_ms), node)
        if node != first:
            yield (
                f"attempt {event.attempt} of {event.name} ({event.subtask}) is recorded on "
                f"{first} and on {node}"
            )
            return


def _earlier_attempts(events: Sequence[TaskChanged], history: History) -> Iterator[str]:
    for event, following in pairwise(events):
        if following.attempt < event.attempt and not any(
            restart.job == event.job
            and event.index < restart.index
            and restart.at_ns <= following.at_ns + SAME_POLL_NS
            for restart in history.of(JobRestarting)
        ):
            yield (
                f"{event.name} ({event.subtask}) is recorded in attempt {event.attempt}, and then "
                f"in attempt {following.attempt}, without a restart of its job"
            )
