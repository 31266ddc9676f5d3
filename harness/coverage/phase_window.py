"""When a phase of the protocol began and ended, as exactly as the record shows it, and whether a
fault is proven to have taken effect in it.

No moment is known exactly: a stamp of the engine has a tolerance, and what was polled happened
before it was observed. So a moment is the interval in which it certainly lies, and a fault is in a
phase only if that follows from every moment in the intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from streamquake.harness.verdict.evidence.engine_clock import STAMP_NS
from streamquake.reports.coverage.cell import CheckpointKind, Phase

NEVER_NS = 1 << 62
"""Later than every moment of a run."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A moment that lies between two times, in nanoseconds of the run's clock."""

    earliest_ns: int
    latest_ns: int

    @classmethod
    def exact(cls, at_ns: int) -> Moment:
        """A moment of the run's own clock."""
        return cls(earliest_ns=at_ns, latest_ns=at_ns)

    @classmethod
    def stamped(cls, at_ns: int, observed_ns: int = NEVER_NS) -> Moment:
        """A moment by the engine's stamp, and not after its observation."""
        latest_ns = min(at_ns + STAMP_NS, max(at_ns, observed_ns))
        return cls(earliest_ns=at_ns - STAMP_NS, latest_ns=latest_ns)

    @classmethod
    def failed(cls, at_ns: int) -> Moment:
        """A failure by the engine's stamp. What is injected before it may have caused it, so the
        tolerance counts only after it."""
        return cls(earliest_ns=at_ns, latest_ns=at_ns + STAMP_NS)

    @classmethod
    def unproven(cls, latest_ns: int = NEVER_NS) -> Moment:
        """A moment of which only the latest time is known, if that."""
        return cls(earliest_ns=0, latest_ns=latest_ns)


@dataclass(frozen=True, kw_only=True)
class PhaseWindow:
    """One phase: of one checkpoint, micro-batch, restart or rescale, or of the load."""

    phase: Phase
    kind: CheckpointKind
    begin: Moment
    end: Moment
    begins_with_failure: bool = False
    """Whether a failure begins it: the fault that caused the failure was before it."""
    ends_with_failure: bool = False
    """Whether a failure ends it: the fault that caused the failure was in it."""
    job: Any = None
    checkpoint: int | None = None
    """The number of its checkpoint or micro-batch."""
    acknowledged: Mapping[tuple[str, int], Moment] = field(default_factory=dict)
    """(vertex name, subtask) -> when it acknowledged, where that is recorded."""


@dataclass(frozen=True, kw_only=True)
class Onset:
    """When a fault took effect: between the call of the injection and the verified effect, in
    nanoseconds of the run's clock."""

    called_ns: int
    seen_ns: int

    def overlaps(self, other: Onset) -> bool:
        """Whether the order of both effects is not known."""
        return self.called_ns <= other.seen_ns and other.called_ns <= self.seen_ns


class Position(IntEnum):
    """Whether a fault was in a phase."""

    OUTSIDE = 0
    POSSIBLE = 1
    PROVEN = 2


def position_of(onset: Onset, window: PhaseWindow) -> Position:
    """Whether a fault took effect in a phase."""
    from_ns = onset.called_ns if window.begins_with_failure else onset.seen_ns
    if window.begin.earliest_ns > from_ns or window.end.latest_ns < onset.called_ns:
        return Position.OUTSIDE
    until_ns = onset.called_ns if window.ends_with_failure else onset.seen_ns
    if window.begin.latest_ns <= onset.called_ns and until_ns <= window.end.earliest_ns:
        return Position.PROVEN
    return Position.POSSIBLE


def acted_in(window: PhaseWindow, from_ns: int, until_ns: int) -> bool:
    """Whether a fault that acted from one moment to another is proven to have acted in a phase that
    began meanwhile."""
    began_meanwhile = from_ns <= window.begin.earliest_ns
    return began_meanwhile and window.begin.latest_ns < min(until_ns, window.end.earliest_ns)
