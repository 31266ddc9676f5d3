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
Place = tuple[str, int]
"""A vertex and the number of one of its subtasks."""


def host_of(taskmanager: Document) -> str:
    """The host a TaskManager advertises, from its address `pekko.tcp://flink@HOST:PORT/…`."""
    return urlsplit(taskmanager["path"]).hostname or taskmanager["path"]


class NodeNames:
    """The node behind a TaskManager's id, also after Flink has forgotten it."""

    def __init__(self, node_of_host: Mapping[str, str], listing: Listing) -> None:
        self._node_of_host = node_of_host
        self._listing = listing
        self._nodes: dict[str, str] = {}

    def node(self, taskmanager: str) -> str:
        """The node's name; empty while a task has no place, the id itself where unknown."""
        if not taskmanager or taskmanager == "(unassigned)":
            return ""
        if taskmanager not in self._nodes:
            for there in self._listing():
                host = host_of(there)
                self._nodes[there["id"]] = self._node_of_host.get(host, host)
        return self._nodes.get(taskmanager, taskmanager)


class TaskWatch:
    """Remembers attempt and state of every subtask of one job.

    After a change of the JobManager the numbers of attempts begin anew: the time at which an
    attempt started tells it from the one before.
    """

    def __init__(self, job: str, names: NodeNames) -> None:
        self._job = job
        self._names = names
        self._seen: dict[Place, tuple[int, int, str]] = {}
        self._ran_whole = False

    def poll(self, vertices: list[Document]) -> Iterator[Observation]:
        """The new events in the answers of `GET /jobs/:job/vertices/:vertex`, one per vertex."""
        before, self._seen = self._seen, {}  # a rescaled vertex has other subtasks than before
        restarted = False
        for vertex in vertices:
            for subtask in vertex["subtasks"]:
                place = (vertex["id"], subtask["subtask"])
                now = (subtask["attempt"], subtask["start-time"], subtask["status"])
                self._seen[place] = now
                if (last := before.get(place)) != now:
                    restarted = restarted or (last is not None and last[1] != now[1])
                    yield self._changed(vertex, subtask)
        # A job that waits for slots, as after a takeover, may have no subtasks to show.
        runs_whole = all(vertex["subtasks"] for vertex in vertices) and all(
            state == "RUNNING" for _, _, state in self._seen.values()
        )
        if runs_whole and (restarted or not self._ran_whole):
            yield Observation(action=Action.JOB_RUNNING, value={"job": self._job})
        self._ran_whole = runs_whole

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
