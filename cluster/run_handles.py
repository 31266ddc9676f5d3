"""What a run lends to its cluster, so that faults can reach the load and the job.

The harness sets `cluster.steering` and `cluster.job` while they are there; a cluster that was
started by hand has neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamquake.cluster.engines.engine import JobSpec


class Steering(Protocol):
    """A load whose records can be disturbed while it runs, with a result that stays known."""

    def steer(self, disturbance: str, parameters: Mapping[str, Any]) -> int:
        """From now on send in another way; returns the index of the first record it concerns.

        Raises ValueError for a disturbance that this load does not know.
        """
        ...

    def settle(self, disturbance: str) -> int:
        """Send as before again; returns the index of the first ordinary record. May run twice."""
        ...

    def sent_under(self, disturbance: str) -> Mapping[str, Any]:
        """What was acknowledged while it was steered so: `active`, `records`, and what shows the
        disturbance itself (such as the share of the hot key)."""
        ...


@dataclass(frozen=True, kw_only=True)
class CurrentJob:
    """The job of the run, by the engine's own id; another one once it was replaced."""

    service: str
    id: str
    spec: JobSpec | None = None
    """As what it was submitted; None for a job that somebody else submitted."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What the placeholders of the run's statements stand for."""
    restored_from: str = ""
    """The path of the state that it was given, if any."""
