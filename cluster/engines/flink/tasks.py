"""Observed task attempts: which attempt of which subtask is on which node, in which state.

The restart count and state of a job do not show which of its tasks were restarted; the attempt
number and start time of every subtask do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from streamquake.cluster.engines.observation import Observation
from streamquake.reports.record.event import Action

Document = Mapping[str, Any]
Listing = Callable[[], list[Document]]
"""Queries the JobManager's list of TaskManagers."""
SubtaskKey = tuple[str, int]
"""A vertex id and the index of one of its subtasks."""


def host_of(taskmanager: Document) -> str:
    """The host that a TaskManager advertises in its address `pekko.tcp://flink@HOST:PORT/…`."""
    return urlsplit(taskmanager["path"]).hostname or taskmanager["path"]


class NodeNames:
    """TaskManager id -> node name, also after Flink has removed the TaskManager from its list."""

    def __init__(self, node_of_host: Mapping[str, str], listing: Listing) -> None:
        self._node_of_host = node_of_host
        self._listing = listing
        self._nodes: dict[str, str] = {}

    def node(self, taskmanager: str) -> str:
        """The node's name; empty while a task is unassigned, the id itself if unknown."""
        if not taskmanager or taskmanager == "(unassigned)":
            return ""
        if taskmanager not in self._nodes:
            for listed in self._listing():
                host = host_of(listed)
                self._nodes[listed["id"]] = self._node_of_host.get(host, host)
        return self._nodes.get(taskmanager, taskmanager)


class TaskWatch:
    """Remembers attempt and state of every subtask of one job.

    Another JobManager counts attempts from 0 again: so attempts are also distinguished by their
    start time.
    """

    def __init__(self, job: str, names: NodeNames) -> None:
        self._job = job
        self._names = names
        self._last_poll: dict[SubtaskKey, tuple[int, int, str]] = {}
        self._was_running = False

    def poll(self, vertices: list[Document]) -> Iterator[Observation]:
        """The new events in the answers of `GET /jobs/:job/vertices/:vertex`, one per vertex."""
        # The subtasks are replaced, since a rescaled vertex has other ones.
        before, self._last_poll = self._last_poll, {}
        restarted = False
        for vertex in vertices:
            for subtask in vertex["subtasks"]:
                place = (vertex["id"], subtask["subtask"])
                now = (subtask["attempt"], subtask["start-time"], subtask["status"])
                self._last_poll[place] = now
                if (last := before.get(place)) != now:
                    restarted = restarted or (last is not None and last[1] != now[1])
                    yield self._changed(vertex, subtask)
        # A job that waits for slots, as after a takeover, may have no subtasks yet. The subtasks of
        # a source that ends are finished.
        states = {state for _, _, state in self._last_poll.values()}
        is_running = (
            all(vertex["subtasks"] for vertex in vertices)
            and "RUNNING" in states
            and states <= {"RUNNING", "FINISHED"}
        )
        if is_running and (restarted or not self._was_running):
            yield Observation(action=Action.JOB_RUNNING, value={"job": self._job})
        self._was_running = is_running

    def _changed(self, vertex: Document, subtask: Document) -> Observation:
        return Observation(
            action=Action.TASK_CHANGED,
            value={
                "job": self._job,
                "vertex": vertex["id"],
                "vertex_name": vertex["name"],
                "subtask": subtask["subtask"],
                "attempt": subtask["attempt"],
                "node": self._names.node(subtask["taskmanager-id"]),
                "state": subtask["status"],
                "start_ms": subtask["start-time"],
                "initializing_ms": _initializing_ms(subtask),
            },
        )


def _initializing_ms(subtask: Document) -> int | None:
    """How long an attempt that runs took to restore its state."""
    if subtask["status"] != "RUNNING":
        return None
    spent: int | None = subtask.get("status-duration", {}).get("INITIALIZING")
    return spent
