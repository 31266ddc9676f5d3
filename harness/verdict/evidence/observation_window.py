"""The interval of a run in which the pauses of its output count. It begins with the first fault's
call. It ends five seconds after the last heal or restart, or five seconds after the longest allowed
pause, whichever is later, but not after the end of the load. Where the job failed and did not run
again, it ends with the load. Each fault must be observed for at least the longest allowed pause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamquake.harness.verdict.evidence.failovers import failures_of
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.reports.record.event import Event
from streamquake.reports.record.fault_windows import FaultWindow, acted_windows, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRunning
from streamquake.reports.record.run_events import RecordsSent, WorkloadDone
from streamquake.topologies.errors import ErrorKind, StreamquakeError

MARGIN_NS = 5 * 10**9
"""How long pauses still count after the heal and the recovery: a late return is part of the
fault."""


class ObservationWindowUnknown(StreamquakeError, LookupError):
    """There is no interval to observe; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class ObservationWindow:
    """The interval in which pauses count, on the run's clock."""

    start_ns: int
    end_ns: int
    cut_ns: int | None
    """When another fault was called: later pauses belong to it; None without one."""
    failed_ns: int | None
    """When the job failed last, if it was not seen running again; None otherwise."""
    last_unobserved: str = ""
    """The last fault of the judged name if it is not in the interval, since another fault was
    called before it."""

    @property
    def reason_not_held(self) -> str | None:
        """Why the check cannot be held, whatever the output shows; None where it can."""
        if self.failed_ns is None and self.last_unobserved and self.cut_ns is not None:
            return (
                f"another fault was called at {self.cut_ns / 1e9:.1f} s, before "
                f"{self.last_unobserved}, and pauses from then on may be its own"
            )
        if self.failed_ns is None:
            return None
        until = "" if self.cut_ns is None else " before another fault was called"
        failed_s = self.failed_ns / 1e9
        return f"the job failed at {failed_s:.1f} s and was not seen running again{until}"


def injected_ns(history: History) -> int | None:
    """When the first fault that took effect was called, on the run's clock; None without one."""
    return min((_ns(window.called_s) for window in acted_windows(history)), default=None)


def observation_window_of(
    history: History, within_s: float, fault: str | None = None
) -> ObservationWindow:
    """The interval in which pauses count, for a limit of `within_s` seconds.

    With `fault` it begins with the first injection of that name and ends when a fault of another
    name is called; later faults of that name are ignored, and the check cannot be held. Raises
    ObservationWindowUnknown where a pause of that length could not have been observed after each
    fault.
    """
    judged = [each for each in acted_windows(history) if fault in (None, each.fault)]
    if not judged:
        missing = "no fault took effect" if fault is None else f"{fault} was not in effect"
        raise ObservationWindowUnknown(f"{missing}, so nothing failed over")
    start_ns = min(_ns(window.called_s) for window in judged)
    cut_ns = _other_fault_ns(history, judged, after_all=fault is None)
    windows = [each for each in judged if cut_ns is None or _ns(each.called_s) < cut_ns]
    over_ns = max(_over_ns(history, window) for window in windows)
    sent: Sequence[Event] = history.of(WorkloadDone) or history.of(RecordsSent)
    if not sent:
        raise ObservationWindowUnknown("nothing was sent")
    last_ns = max(_ns(window.called_s) for window in windows)
    until_ns = min(sent[-1].at_ns, history[-1].at_ns if cut_ns is None else cut_ns)
    failed_ns = _unrecovered_failure_ns(history, start_ns, until_ns, cut_ns)
    if failed_ns is not None:
        over_ns = until_ns
    end_ns = min(max(over_ns, last_ns + round(within_s * 1e9)) + MARGIN_NS, until_ns)
    if (observed_s := (end_ns - last_ns) / 1e9) < within_s:
        ended = "the load ended" if until_ns == sent[-1].at_ns else "another fault was called"
        raise ObservationWindowUnknown(
            f"{ended} {max(observed_s, 0):.1f} s after {_fault_name(windows)} was injected, "
            f"and a pause of {within_s:g} s could not have been seen; send longer, or inject it "
            "later"
        )
    return ObservationWindow(
        start_ns=start_ns,
        end_ns=end_ns,
        cut_ns=cut_ns,
        failed_ns=failed_ns,
        last_unobserved="" if len(windows) == len(judged) else _fault_name(judged),
    )


def _over_ns(history: History, window: FaultWindow) -> int:
    """When the fault was over: healed, and the job running after its effect, whichever was
    later."""
    seen_ns = _ns(window.in_effect_s or window.called_s)
    over = [event.at_ns for event in history.of(JobRunning) if event.at_ns >= seen_ns]
    if window.healed_s is not None:
        over.append(_ns(window.healed_s))
    if not over:
        raise ObservationWindowUnknown(
            f"neither the heal of {window.fault or 'the fault'} (faults[{window.step}]) nor the "
            "job running again was seen"
        )
    return max(over)


def _unrecovered_failure_ns(
    history: History, start_ns: int, until_ns: int, cut_ns: int | None
) -> int | None:
    """When the job failed last in the interval, if it was not seen running again before the next
    fault; None otherwise."""
    recorded = failures_of(in_engine_order(history))
    failures = (event.at_ns for event in recorded if start_ns <= event.at_ns <= until_ns)
    failed_ns = max(failures, default=None)
    if failed_ns is None:
        return None
    again = history.first(JobRunning, after_ns=failed_ns)
    recovered = again is not None and (cut_ns is None or again.at_ns <= cut_ns)
    return None if recovered else failed_ns


def _other_fault_ns(history: History, windows: list[FaultWindow], *, after_all: bool) -> int | None:
    """When a fault that is not judged was called after the first judged fault, or, with
    `after_all`, after all of them; None without one.

    Its own pauses must not count against a limit that names another fault.
    """
    steps = {window.step for window in windows}
    injected_ns = [_ns(window.called_s) for window in windows]
    since_ns = max(injected_ns) if after_all else min(injected_ns)
    called = (_ns(each.called_s) for each in fault_windows(history) if each.step not in steps)
    return min((at_ns for at_ns in called if at_ns > since_ns), default=None)


def _fault_name(windows: list[FaultWindow]) -> str:
    last = max(windows, key=lambda window: window.called_s)
    return "the fault" if len(windows) == 1 else f"{last.fault} (faults[{last.step}])"


def _ns(moment_s: float) -> int:
    return round(moment_s * 1e9)
