"""Observed executors and task attempts, and whether the query's tasks run.

Tasks of a micro-batch are short, so an attempt is recorded once, at its end. An attempt that failed
or was not the first of its task shows a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.cluster.engines.observation import Observation
from streamquake.cluster.engines.spark.driver_listener import Entry
from streamquake.cluster.engines.spark.job import root_cause
from streamquake.reports.record.event import Action


class SparkTaskWatch:
    """Remembers whether the tasks of one query run."""

    def __init__(self, job: str, node_of_host: Mapping[str, str]) -> None:
        self._job = job
        self._node_of_host = node_of_host
        self._runs = False

    def poll(self, entry: Entry) -> Iterator[Observation]:
        """The events of tasks and executors in an entry of the driver's listener."""
        match entry["what"]:
            case "executor added":
                value = {**self._executor(entry), "added_ms": entry["ms"]}
                yield Observation(action=Action.EXECUTOR_ADDED, value=value)
            case "executor removed":
                reason = root_cause(str(entry["reason"]))
                value = {**self._executor(entry), "lost_ms": entry["ms"], "reason": reason}
                yield Observation(action=Action.EXECUTOR_LOST, value=value, error=reason)
                self._runs = False
            case "task started" | "idle" if not self._runs:
                self._runs = True
                yield Observation(action=Action.JOB_RUNNING, value={"job": self._job})
            case "task ended":
                yield self._attempt(entry)

    def stop(self) -> None:
        """Remember that no task runs: the query or its driver has ended."""
        self._runs = False

    def _executor(self, entry: Entry) -> dict[str, Any]:
        host = str(entry["host"])
        return {
            "job": self._job,
            "executor": entry["executor"],
            "node": self._node_of_host.get(host, host),
        }

    def _attempt(self, entry: Entry) -> Observation:
        names = (
            "batch",
            "stage",
            "stage_attempt",
            "task",
            "attempt",
            "partition",
            "state",
            "start_ms",
            "end_ms",
            "speculative",
            "kind",
        )
        value = {**self._executor(entry), **{n: entry[n] for n in names if n in entry}}
        reason = root_cause(str(entry.get("reason", "")))
        if reason:
            value["reason"] = reason
        return Observation(action=Action.TASK_ATTEMPT, value=value, error=reason or None)
