"""The events of a job, its tasks and its executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.event_field import EventField

MOST_SUBTASKS = 1 << 15
"""The upper bound of a vertex's parallelism in Flink
(https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/datastream/execution/parallel/)."""


class VerticesField(EventField[Sequence[Mapping[str, Any]]]):
    """The vertices of a job: each {id, name, parallelism}."""

    def of(self, event: Event) -> Sequence[Mapping[str, Any]]:
        """The vertices. Raises ValueError where one has more subtasks than a job can have: readers
        make a list of the subtasks, and a record may be from an untrusted source."""
        vertices = super().of(event)
        for vertex in vertices:
            parallelism = vertex.get("parallelism", 0)
            if isinstance(parallelism, int | float) and parallelism > MOST_SUBTASKS:
                raise ValueError(
                    f"event {event.index}: expected a parallelism of at most {MOST_SUBTASKS:,} "
                    f"for the vertex {vertex.get('name')}, found {parallelism:,}"
                )
        return vertices


class JobEvent(Event):
    """An event of one job."""

    job = EventField[str | None](None)
    """The job's id. A query that restarts from its state keeps its id. Missing in old records."""


class JobSubmitted(JobEvent, action=Action.JOB_SUBMITTED):
    """A job was submitted. Also recorded when a job restarts from its state under a new id."""

    name = EventField[str | None](None)
    """The job's name."""
    vertices = VerticesField(())
    """The vertices of the job graph, each {id, name, parallelism}."""
    edges = EventField[Sequence[Mapping[str, Any]] | None](None)
    """The edges of the job graph, each {from, to, ...} with ids of vertices; missing in old
    records."""
    config = EventField[Mapping[str, Any] | None](None)
    """The checkpoint settings that the engine reports."""
    regions = EventField[Sequence[Sequence[tuple[str, int]]] | None](None)
    """The subtasks of each pipelined region, as pairs of a vertex's id and the subtask's index;
    missing in old records."""
    submitted_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""


class JobRunning(JobEvent, action=Action.JOB_RUNNING):
    """Every task runs. Recorded again after each restart."""


class JobFailing(JobEvent, action=Action.JOB_FAILING):
    """The job failed. Its tasks restart if its restart strategy allows it."""

    cause = EventField[str | None](None)
    """The root cause."""
    task = EventField[str | None]("")
    """The task that failed; null where the whole job failed, empty where the record does not have
    it."""
    endpoint = EventField[str | None](None)
    """The host and port of the task that failed."""
    failed_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""
    own = EventField[bool | None](None)
    """Of a query: whether a failed batch ended it; false where its driver ended."""


class JobRestarting(JobEvent, action=Action.JOB_RESTARTING):
    """The job restarts."""

    restart = EventField[int | None](None)
    """The number of restarts so far."""
    restarting_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""


FAILURES = (JobFailing, JobRestarting)
"""The events with which an engine reports a failure."""


class JobRestored(JobEvent, action=Action.JOB_RESTORED):
    """The job restored a checkpoint."""

    checkpoint = EventField[int]()
    """The number of the checkpoint; -1 for a query without one."""
    restored_at_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""
    path = EventField[str | None](None)
    """The folder of the checkpoint."""


class JobEnded(JobEvent, action=Action.JOB_ENDED, kinds=(Kind.OK, Kind.FAIL)):
    """The job reached a terminal state."""

    state = EventField[str]("")
    """`FINISHED`, `FAILED` or `CANCELED`."""
    cause = EventField[str | None](None)
    """The root cause of its last failure."""
    ended_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""


class TaskChanged(JobEvent, action=Action.TASK_CHANGED):
    """An attempt of a subtask changed its state."""

    vertex = EventField[str]()
    """The id of the vertex."""
    vertex_name = EventField[str | None](None)
    """The name of the vertex; missing in old records."""
    subtask = EventField[int]()
    """The index of the subtask, from zero."""
    attempt = EventField[int]()
    """The number of the attempt, from zero."""
    node = EventField[str | None]()
    """The node on which the attempt runs; null where the engine does not report it."""
    state = EventField[str]()
    """Its execution state."""
    start_ms = EventField[float | None](None)
    """When the attempt started, in milliseconds since the epoch; missing in old records."""
    initializing_ms = EventField[int | None](None)
    """How long the attempt restored its state, in milliseconds; known once it runs."""

    @property
    def place(self) -> tuple[str, int]:
        """The id of the vertex and the index of the subtask."""
        return self.vertex, self.subtask

    @property
    def deployed_ms(self) -> float:
        """When the attempt was deployed, in milliseconds since the epoch; 0 or less before that, or
        where it is not known."""
        return self.start_ms or 0

    @property
    def name(self) -> str:
        """The name of the vertex, or its id in a record without the name."""
        return str(self.value.get("vertex_name", self.vertex))


class TaskAttempt(JobEvent, action=Action.TASK_ATTEMPT):
    """An attempt of a task of one batch ended."""

    executor = EventField[str]("")
    """The id of the executor."""
    node = EventField[str | None]()
    """The node of the executor."""
    batch = EventField[int | None](None)
    """The number of the micro-batch; missing where the task belongs to none."""
    stage = EventField[int]()
    """The id of the stage."""
    stage_attempt = EventField[int]()
    """The number of the stage's attempt, from zero."""
    task = EventField[int]()
    """The index of the task in its stage."""
    attempt = EventField[int](0)
    """The number of the attempt, from zero."""
    partition = EventField[int | None](None)
    """The partition that the task computes; missing in old records."""
    state = EventField[str]()
    """How the attempt ended."""
    ended_by = EventField[str | None](None, name="kind")
    """The class of its failure; missing where it succeeded, and in old records."""
    reason = EventField[str | None](None)
    """The root cause of its failure."""
    start_ms = EventField[int]()
    """When it started, in milliseconds since the epoch."""
    end_ms = EventField[int]()
    """When it ended, in milliseconds since the epoch."""
    speculative = EventField[bool | None](None)
    """Whether it is a speculative copy of a slow attempt."""


class ExecutorAdded(JobEvent, action=Action.EXECUTOR_ADDED):
    """An executor was registered."""

    executor = EventField[str]("")
    """The id of the executor."""
    node = EventField[str | None](None)
    """Its node."""
    added_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""


class ExecutorLost(JobEvent, action=Action.EXECUTOR_LOST):
    """An executor was lost."""

    executor = EventField[str]("")
    """The id of the executor."""
    node = EventField[str | None](None)
    """Its node."""
    reason = EventField[str | None](None)
    """The root cause."""
    lost_ms = EventField[float | None](None)
    """The time of the event, in milliseconds since the epoch."""
