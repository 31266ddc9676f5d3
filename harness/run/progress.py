"""The progress of a run: its figures, and the protocol of a view that shows them.

The two views are in `progress_views.py`: one for terminals, one for CI and redirected output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, CheckpointFailed
from streamquake.reports.record.event import Event
from streamquake.reports.record.job_events import JobRestarting
from streamquake.reports.record.run_events import OutputSeen, RecordsSent

RATE_WINDOW_NS = 2 * 10**9
"""Throughput is the mean over this window: long enough to be readable, short enough to show a
stall."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a run at one moment. None means "not known yet"."""

    phase: str = ""
    elapsed_s: float = 0.0
    wanted: int | None = None
    """How many records the workload will send."""
    acknowledged: int = 0
    sent_per_s: float = 0.0
    output: int = 0
    lag: int | None = None
    """Input records that the job has not committed as read."""
    checkpoints_completed: int = 0
    checkpoints_failed: int = 0
    restarts: int = 0
    active: tuple[str, ...] = ()
    """The faults in effect, such as `kill on flink/taskmanager-2`."""


class View(Protocol):
    """A display of a run's progress."""

    def phase(self, name: str, detail: str) -> None:
        """Show that a phase of the run began."""
        ...

    def show_message(self, line: str) -> None:
        """Show a message on its own line."""
        ...

    def update(self, now: Figures) -> None:
        """Show the current figures; called about four times a second."""
        ...


@dataclass
class RunStatus:
    """Computes the figures of a run from its events and samples."""

    wanted: int | None
    _figures: Figures = field(default_factory=Figures)
    _outputs: dict[str, int] = field(default_factory=dict)
    _sent: deque[tuple[int, int]] = field(default_factory=deque)

    @classmethod
    def at_start(cls, experiment: Experiment) -> RunStatus:
        """The status before the first event."""
        return cls(wanted=experiment.workload.planned)

    def on_event(self, event: Event) -> None:
        """Take an event of the history into account."""
        now = self._figures
        match event:
            case RecordsSent(status="acknowledged"):
                self._sent.append((event.at_ns, event.count))
                self._figures = replace(now, acknowledged=now.acknowledged + event.count)
            case OutputSeen():
                self._count_output(event)
            case CheckpointCompleted():
                self._figures = replace(now, checkpoints_completed=now.checkpoints_completed + 1)
            case CheckpointFailed():
                self._figures = replace(now, checkpoints_failed=now.checkpoints_failed + 1)
            case JobRestarting():
                self._figures = replace(now, restarts=now.restarts + 1)

    def on_sample(self, series: str, value: float) -> None:
        """Take a sample into account; only the lag is shown."""
        if series == "lag":
            self._figures = replace(self._figures, lag=int(value))

    def now(self, phase: str, elapsed_s: float, active: Sequence[str]) -> Figures:
        """The figures at this moment of the run."""
        since_ns = int(elapsed_s * 1e9) - RATE_WINDOW_NS
        while self._sent and self._sent[0][0] < since_ns:
            self._sent.popleft()
        rate = sum(count for _, count in self._sent) / (RATE_WINDOW_NS / 1e9)
        return replace(
            self._figures,
            phase=phase,
            elapsed_s=elapsed_s,
            wanted=self.wanted,
            sent_per_s=rate,
            active=tuple(active),
        )

    def _count_output(self, event: OutputSeen) -> None:
        sum_of_growth = self._outputs.get(event.output, 0) + (event.grown or 0)
        self._outputs[event.output] = sum_of_growth if event.end is None else event.end
        self._figures = replace(self._figures, output=sum(self._outputs.values()))
