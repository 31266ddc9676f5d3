"""The interval of a run in which the pauses of its output count. It begins with the first fault's
call. It ends five seconds after the last heal or restart, or five seconds after the longest allowed
pause, whichever is later, but not after the end of the load. Where the job failed and did not run
again, it ends with the load. A failure long after the heal of all faults and the recovery ends it:
it is not attributed to a fault. Each fault must be observed for at least the longest allowed
pause."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from streamquake.harness.verdict.evidence.down_by_itself import (
    down_by_itself_since_ns,
    down_message,
    ended_ns,
    unattributed_failure_ns,
)
from streamquake.harness.verdict.evidence.failovers import failures_of
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.reports.record.fault_windows import FaultWindow, acted_windows, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRunning
from streamquake.topologies.errors import ErrorKind, StreamquakeError

MARGIN_NS = 5 * 10**9
"""How long pauses still count after the heal and the recovery: a late return is part of the
fault."""

ANOTHER_FAULT, FAILED_BY_ITSELF = "another fault was called", "the job failed by itself"


class ObservationWindowUnknown(StreamquakeError, LookupError):
    """There is no interval to observe; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class ObservationWindow:
    """The interval in which pauses count, on the run's clock."""

    start_ns: int
    end_ns: int
    first_ns: int
    """When the first fault of the run was called, judged or not: the output is usual until then."""
    cut_ns: int | None
    """When the cause of later pauses began: another fault, or a failure that is not attributed to a
    fault; None without one."""
    cut_by: str = ANOTHER_FAULT
    """Which of the two it was."""
    down_before: str = ""
    """That the job was down by itself when the first fault was called, so that the first pause may
    not be the fault's; empty where it was not."""
    down_until_ns: int | None = None
    """When the job ran again after that; None where it did not, or was not down."""
    not_recovered: str = ""
    """That the job failed and was not seen running again; empty where it was."""
    last_unobserved: str = ""
    """The last fault of the judged name if it is not in the interval, since the cut is before
    it."""

    @property
    def had_earlier_faults(self) -> bool:
        """Whether faults that are not judged were called before the interval: a pause that began
        before it may be theirs."""
        return self.first_ns < self.start_ns

    @property
    def reason_not_held(self) -> str | None:
        """Why the check cannot be held, whatever the output shows; None where it can."""
        if not self.not_recovered and self.last_unobserved and self.cut_ns is not None:
            return (
                f"{self.cut_by} at {self.cut_ns / 1e9:.1f} s, before "
                f"{self.last_unobserved}, and pauses from then on may be its own"
            )
        return self.not_recovered or None


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
    fault, where the heal of one was not seen, and where the job was down before the interval and
    remained so.
    """
    judged = [each for each in acted_windows(history) if fault in (None, each.fault)]
    if not judged:
        missing = "no fault took effect" if fault is None else f"{fault} was not in effect"
        raise ObservationWindowUnknown(f"{missing}, so nothing failed over")
    if (loaded_ns := load_ended_ns(history)) is None:
        raise ObservationWindowUnknown("nothing was sent")
    start_ns = min(_ns(window.called_s) for window in judged)
    other_ns = _other_fault_ns(history, judged, after_all=fault is None)
    not_recovered = _not_recovered(history, start_ns, loaded_ns, other_ns)
    cut_ns, cut_by = _first_cut(other_ns, unattributed_failure_ns(history, start_ns))
    windows = [each for each in judged if cut_ns is None or _ns(each.called_s) < cut_ns]
    last_ns = max(_ns(window.called_s) for window in windows)
    until_ns = min(loaded_ns, history.ended_ns if cut_ns is None else cut_ns)
    over_ns = max(_over_ns(history, window, cut_ns) for window in windows)
    if not_recovered and cut_by != FAILED_BY_ITSELF:
        over_ns = until_ns
    end_ns = min(max(over_ns, last_ns + round(within_s * 1e9)) + MARGIN_NS, until_ns)
    if (observed_s := (end_ns - last_ns) / 1e9) < within_s:
        ended = "the load ended" if until_ns == loaded_ns else cut_by
        raise ObservationWindowUnknown(
            f"{ended} {max(observed_s, 0):.1f} s after {_fault_name(windows)} was injected, "
            f"and a pause of {within_s:g} s could not have been seen; send longer, or inject it "
            "later"
        )
    down_ns = down_by_itself_since_ns(history, start_ns)
    return ObservationWindow(
        start_ns=start_ns,
        end_ns=end_ns,
        first_ns=injected_ns(history) or start_ns,
        cut_ns=cut_ns,
        cut_by=cut_by,
        down_before="" if down_ns is None else down_message(down_ns),
        down_until_ns=_ran_again_ns(history, down_ns),
        not_recovered=not_recovered,
        last_unobserved="" if len(windows) == len(judged) else _fault_name(judged),
    )


def _ran_again_ns(history: History, down_ns: int | None) -> int | None:
    """When the job ran again after a failure; None without one, and where it did not."""
    if down_ns is None or (running := history.first(JobRunning, after_ns=down_ns)) is None:
        return None
    return running.at_ns


def _first_cut(other_ns: int | None, unattributed_ns: int | None) -> tuple[int | None, str]:
    """When later pauses no longer belong to the judged faults, and why."""
    if unattributed_ns is not None and (other_ns is None or unattributed_ns < other_ns):
        return unattributed_ns, FAILED_BY_ITSELF
    return other_ns, ANOTHER_FAULT


def _over_ns(history: History, window: FaultWindow, cut_ns: int | None) -> int:
    """When the fault was over: healed, and the job running after its effect, whichever was
    later. Raises ObservationWindowUnknown where the heal was not seen: it may act until the end."""
    over_ns = ended_ns(window)
    if over_ns is None:
        raise ObservationWindowUnknown(
            f"the heal of {window.fault or 'the fault'} (faults[{window.step}]) was not seen"
        )
    seen_ns = _ns(window.in_effect_s or window.called_s)
    until_ns = inf if cut_ns is None else cut_ns
    running = (event.at_ns for event in history.of(JobRunning))
    return max([over_ns, *(at_ns for at_ns in running if seen_ns <= at_ns <= until_ns)])


def _not_recovered(history: History, start_ns: int, loaded_ns: int, other_ns: int | None) -> str:
    """That the job failed, before the end of the load and the next fault, and was not seen running
    again before the next fault; empty where it was. Raises ObservationWindowUnknown if it failed
    before the interval."""
    until_ns = loaded_ns if other_ns is None else min(loaded_ns, other_ns)
    recorded = failures_of(in_engine_order(history))
    failed_ns = max((e.at_ns for e in recorded if e.at_ns <= until_ns), default=None)
    if failed_ns is None:
        return ""
    again = history.first(JobRunning, after_ns=failed_ns)
    if again is not None and (other_ns is None or again.at_ns <= other_ns):
        return ""
    until = "" if other_ns is None else f" before {ANOTHER_FAULT}"
    message = f"the job failed at {failed_ns / 1e9:.1f} s and was not seen running again{until}"
    if failed_ns < start_ns:
        raise ObservationWindowUnknown(f"{message}, so it was down before the fault was called")
    return message


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
