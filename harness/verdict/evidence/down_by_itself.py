"""Failures of a job that no fault explains, and whether the job was down because of one when a
fault was called: then what follows may not be the fault's."""

from __future__ import annotations

from streamquake.harness.verdict.evidence.failovers import failures_of
from streamquake.harness.verdict.evidence.job_return import checkpoints_since, running_after
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.unattributed_failure import first_unattributed
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.fault_windows import FaultWindow, acted_windows, fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import ExecutorLost, JobEvent, JobRunning


def down_by_itself_since_ns(history: History, at_ns: int) -> int | None:
    """When the job failed, if it was still down at a moment and no fault explains the failure: no
    fault had been called, or all were over long before."""
    ordered = in_engine_order(history)
    failures = sorted(failures_of(ordered), key=lambda event: event.at_ns)
    down = (e.at_ns for e in failures if e.at_ns < at_ns and not _was_back(ordered, e, at_ns))
    if (failed_ns := next(down, None)) is None:
        return None
    called_ns = [_ns(window.called_s) for window in fault_windows(history)]
    if (earlier_ns := max((each for each in called_ns if each <= failed_ns), default=None)) is None:
        return failed_ns
    own_ns = unattributed_failure_ns(history, earlier_ns)
    return failed_ns if own_ns is not None and own_ns <= failed_ns else None


def down_message(failed_ns: int) -> str:
    """The reason that such a failure gives."""
    return (
        f"the job had failed by itself at {failed_ns / 1e9:.1f} s and did not run when the fault "
        "was called"
    )


def _was_back(history: History, failure: JobEvent, by_ns: int) -> bool:
    """Whether the failed job, or its replacement, ran again or completed a checkpoint before a
    moment."""
    running = running_after(history, failure)
    if running is not None and running.at_ns < by_ns:
        return True
    completed = next(checkpoints_since(history, None, failure.at_ns), None)
    return completed is not None and completed.at_ns < by_ns


def unattributed_failure_ns(history: History, start_ns: int) -> int | None:
    """When the job failed or lost an executor after `start_ns`, long after the heal of every fault
    called until then and after the recovery from every earlier failure; None where it did not. A
    job that completed checkpoints must have completed one since then: a checkpoint that hangs since
    a fault may end the job when it expires."""
    ordered = in_engine_order(history)
    reported = (*failures_of(ordered), *ordered.of(ExecutorLost))
    failures_ns = sorted(event.at_ns for event in reported)
    running_ns = [event.at_ns for event in ordered.of(JobRunning)]
    faults_ns = [(_ns(each.called_s), ended_ns(each)) for each in acted_windows(history)]

    def was_back(at_ns: int, failure_ns: int) -> bool:
        ends_ns = [end_ns for called_ns, end_ns in faults_ns if called_ns <= failure_ns]
        earlier_ns = [each for each in failures_ns if each < failure_ns]
        last_ns = max(earlier_ns, default=0)
        back_ns = [each for each in running_ns if last_ns <= each < failure_ns]
        over_ns = [each for each in (*ends_ns, *back_ns) if each is not None and each <= at_ns]
        if len(over_ns) < len(ends_ns) + len(back_ns) or (earlier_ns and not back_ns):
            return False
        since_ns = max([last_ns, *(each for each in ends_ns if each is not None)])
        return not ends_ns or _completes_checkpoints(ordered, since_ns, at_ns, failure_ns)

    return first_unattributed([each for each in failures_ns if each > start_ns], was_back)


def _completes_checkpoints(history: History, since_ns: int, by_ns: int, failure_ns: int) -> bool:
    """Whether a checkpoint was triggered since a moment and completed by another one; True for a
    job that completed none before its failure."""
    if not any(event.at_ns < failure_ns for event in history.of(CheckpointCompleted)):
        return True
    completed = next(checkpoints_since(history, None, since_ns), None)
    return completed is not None and completed.at_ns <= by_ns


def ended_ns(window: FaultWindow) -> int | None:
    """When the fault was healed, or ended early if its heal was not seen; None where it may still
    act."""
    ended_s = window.ended_early_s if window.healed_s is None else window.healed_s
    return None if ended_s is None else _ns(ended_s)


def _ns(moment_s: float) -> int:
    return round(moment_s * 1e9)
