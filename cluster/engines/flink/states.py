"""The observed state of a job: failures with their causes, restarts, the end.

A Flink job is RESTARTING even if only one region of many restarts, and may leave that state between
two polls. So a restart is detected by the time stamp of the state, not by the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.cluster.engines.observation import Observation
from streamquake.reports.record.event import Action, Kind
from streamquake.topologies.errors import root_cause

Document = Mapping[str, Any]
ENDED = ("FAILED", "CANCELED", "FINISHED")
LOST = "LOST"
"""The JobManager answers but does not know the job: it was restarted without retained state."""


class StateWatch:
    """Remembers the observed state of one job."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._restarts = 0
        self._restarting_ms = 0
        self._first_begun_ms = 0
        self._last_failure_ms = 0
        self._last_cause = ""
        self.ended = False

    def poll(self, detail: Document) -> Iterator[Observation]:
        """The new events in an answer of `GET /jobs/:job`."""
        entered_ms = self._restart_ms(detail["timestamps"])
        if entered_ms > self._restarting_ms:
            self._restarting_ms = entered_ms
            self._restarts += 1
            yield Observation(
                action=Action.JOB_RESTARTING,
                value={"job": self._job, "restart": self._restarts, "restarting_ms": entered_ms},
            )
        if detail["state"] in ENDED:
            yield from self.end(detail["state"], detail["timestamps"].get(detail["state"], 0))

    def _restart_ms(self, timestamps: Mapping[str, int]) -> int:
        """When the job was last restarted, or restarted by another JobManager after a takeover."""
        begun_ms = timestamps.get("INITIALIZING", 0)
        self._first_begun_ms = self._first_begun_ms or begun_ms
        taken_over_ms = begun_ms if begun_ms > self._first_begun_ms else 0
        return max(timestamps.get("RESTARTING", 0), taken_over_ms)

    def failures(self, document: Document) -> Iterator[Observation]:
        """The new events in an answer of `GET /jobs/:job/exceptions`, oldest first."""
        for entry in reversed(document["exceptionHistory"]["entries"]):
            if entry["timestamp"] > self._last_failure_ms:
                self._last_failure_ms = entry["timestamp"]
                self._last_cause = root_cause(entry["stacktrace"])
                yield Observation(
                    action=Action.JOB_FAILING,
                    value={
                        "job": self._job,
                        "cause": self._last_cause,
                        "task": entry.get("taskName"),
                        "endpoint": entry.get("endpoint"),
                        "failed_ms": entry["timestamp"],
                    },
                    error=self._last_cause,
                )

    def end(self, state: str, ended_ms: int = 0) -> Iterator[Observation]:
        """The end of the job, at an epoch ms if known; recorded once."""
        if self.ended:
            return
        self.ended = True
        failed = state in ("FAILED", LOST)
        cause = self._last_cause or "the JobManager no longer knows the job"
        yield Observation(
            action=Action.JOB_ENDED,
            kind=Kind.FAIL if failed else Kind.OK,
            value={
                "job": self._job,
                "state": state,
                "cause": self._last_cause,
                "ended_ms": ended_ms,
            },
            error=cause if failed else None,
        )
