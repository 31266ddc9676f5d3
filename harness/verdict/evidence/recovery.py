"""The phases of a recovery: the moments between a fault's effect and the system's return to normal.

Each fault that took effect has its own recovery, from its effect until the effect of the next
fault. Where the next fault took effect before the system had recovered, the first recovery is cut
off, and only the next one can show that the system recovered.

Definitions. Detection: the first failing or restarting state, failed end, or lost executor that the
engine reports after the fault's call (an engine may notice before the harness verifies the effect).
Restart: every task of that job, or of its replacement, runs again. Restore: the last time that
state was assigned for this restart. Lag is normal when it stays at or below its 95th percentile
from before the fault (of micro-batches: see `lag`). First checkpoint: the first completed one, no
savepoint, that was triggered after the restart. Without a failure, the first output and checkpoint
after the effect count, even if the fault still acts. A job that failed and does not run again has
not resumed, whatever was healed. Files are not polled for growth:
if a job writes only files, its first output is the commit of its first checkpoint.

A failure long after the heal of all faults and the return to normal is not attributed to the fault;
it and later events belong to no recovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from streamquake.harness.verdict.evidence.down_by_itself import (
    down_by_itself_since_ns,
    down_message,
)
from streamquake.harness.verdict.evidence.engine_clock import clock_moved
from streamquake.harness.verdict.evidence.job_return import (
    checkpoints_since,
    contradicted_triggers,
    ran_by_ns,
    running_after,
)
from streamquake.harness.verdict.evidence.lag import lag_normal_s
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.restores import is_failure
from streamquake.harness.verdict.evidence.sent_times import load_ended_ns
from streamquake.harness.verdict.evidence.silent_outputs import has_grown, silent_outputs
from streamquake.harness.verdict.evidence.unattributed_failure import SETTLED_S, first_unattributed
from streamquake.harness.verdict.evidence.unexplained_ends import ended_from_outside, how
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Event
from streamquake.reports.record.fault_windows import (
    FaultWindow,
    acted_windows,
    fault_windows,
    overlapping,
    overlapping_groups,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import (
    ExecutorLost,
    JobEnded,
    JobEvent,
    JobFailing,
    JobRestarting,
    JobRestored,
    JobRunning,
)
from streamquake.reports.record.run_events import OutputSeen, RunDrained

_NO_PHASES = (
    "fault",
    "step",
    "effect_at_s",
    "until_s",
    "watched_s",
    "loaded_s",
    "overlaps",
    "from_heal",
    "was_back",
    "drained",
    "other_cause",
    "unclear",
    "uncertainty",
)
_FAILURES = (JobFailing, JobRestarting, ExecutorLost, JobEnded)
"""The events with which an engine reports a failure, including one that only ends the tasks of an
executor. Only failed ends count."""
RECORDED_LATER_S = 1.0
"""How much later than its send a record may be recorded, and than its commit an output."""


@dataclass(frozen=True, kw_only=True)
class RecoveryPhases:
    """Seconds from a fault's effect to each moment; 0 for a moment before the effect was verified;
    None where it did not happen before the next fault, or before the end."""

    fault: str
    step: int
    effect_at_s: float
    until_s: float | None
    """Seconds from the effect to the call of the next fault; None for the last one."""
    watched_s: float
    """Seconds from the effect to the end of the run, at most until the next fault."""
    loaded_s: float
    """Seconds from the effect to the end of the sends, at most until the next fault."""
    overlaps: tuple[str, ...]
    """Faults that acted at the same time."""
    detected_s: float | None
    restarted_s: float | None
    restored_s: float | None
    first_output_s: float | None
    lag_normal_s: float | None
    first_checkpoint_s: float | None
    from_heal: bool = False
    """Whether it counts from the fault's heal instead of its effect."""
    was_back: bool = False
    """With `from_heal`: whether the system had recovered before the heal, or never failed."""
    drained: bool = False
    """Whether nothing was sent after the heal and the run drained: without a failure this is
    enough."""
    other_cause: str = ""
    """What else may have made a late recovery late: the job was down by itself when the fault was
    called, or a node ended that no fault ended; empty where nothing is known."""
    unclear: str = ""
    """Why the record does not show when the system recovered."""
    uncertainty: str = ""
    """Why it may not have recovered for good."""

    def to_json(self) -> Mapping[str, float | None]:
        """The phases; the moment of the effect itself is recorded with its fault."""
        phases = asdict(self)
        for name in _NO_PHASES:
            del phases[name]
        return {key: value if value is None else round(value, 3) for key, value in phases.items()}


def main_recovery(phases: Sequence[Mapping[str, Any]]) -> int:
    """Which recovery the figures of a run describe: the first whole one from a failure of the job,
    else the first from a failure, else the first.

    A fault that only holds a window open, and a try that missed its window, come before the fault
    that the run is about.
    """

    def worth(each: Mapping[str, Any]) -> int:
        if each["detected_s"] is None:
            return 0
        return 1 if each["restarted_s"] is None or each["first_output_s"] is None else 2

    return max(range(len(phases)), key=lambda place: worth(phases[place]))


def recoveries_of(
    history: History, metrics: Path, *, only_files: bool
) -> tuple[RecoveryPhases, ...]:
    """The recovery after each fault that took effect, in the order of their effects."""
    if not (windows := acted_windows(history)):
        return ()
    history = in_engine_order(history)
    later = (*windows[1:], None)
    ends = [_next_call_s(history, *both) for both in zip(windows, later, strict=True)]
    healed_s_of = {
        each: _last_heal_s(group) for group in overlapping_groups(windows) for each in group
    }
    return tuple(
        _recovery(history, metrics, window, until_s, windows, healed_s_of[window], only_files)
        for window, until_s in zip(windows, ends, strict=True)
    )


def recoveries_until_next_effect(
    history: History, metrics: Path, *, only_files: bool
) -> tuple[RecoveryPhases, ...]:
    """The recovery after each fault with a failure, except the last, until the effect of the next
    fault, which may have been called long before."""
    windows = acted_windows(history)
    history = in_engine_order(history)
    found = (
        _recovery(history, metrics, window, later.in_effect_s or inf, windows, None, only_files)
        for window, later in pairwise(windows)
    )
    return tuple(each for each in found if each.detected_s is not None)


def recoveries_from_heal(
    history: History, metrics: Path, *, only_files: bool
) -> tuple[RecoveryPhases, ...]:
    """The recovery from the last heal of each group of overlapping faults, where the recoveries
    from effects do not cover it: it was the heal of another fault than the last in effect, or the
    system was back before it.

    A heal after which nothing was sent requires only that the run drained.
    """
    history = in_engine_order(history)
    windows = acted_windows(history)
    groups = overlapping_groups(windows)
    injected = recoveries_of(history, metrics, only_files=only_files)
    recovery_of = dict(zip(windows, injected, strict=True))
    found = []
    for number, group in enumerate(groups):
        healed_s = _last_heal_s(group)
        was_back = healed_s == group[-1].healed_s
        if healed_s is None or (
            was_back and not _was_back_before(recovery_of[group[-1]], healed_s)
        ):
            continue
        until_s = groups[number + 1][0].called_s if group is not groups[-1] else inf
        last = next(window for window in group if window.healed_s == healed_s)
        healed = replace(last, called_s=healed_s, in_effect_s=healed_s)
        recovery = _recovery(history, metrics, healed, until_s, (), healed_s, only_files)
        if not recovery.drained:
            found.append(replace(recovery, from_heal=True, was_back=was_back))
    return tuple(found)


def _next_call_s(history: History, window: FaultWindow, later: FaultWindow | None) -> float:
    """When the next fault was called, also one without a verified effect: a part of it may act."""
    unverified = (
        each.called_s
        for each in fault_windows(history)
        if not each.acted and each.called_s > window.called_s
    )
    return min([inf if later is None else later.called_s, *unverified])


def _was_back_before(recovery: RecoveryPhases, healed_s: float) -> bool:
    """Whether output or a checkpoint of the recovery was seen before the last heal."""
    if recovery.first_output_s is None:
        return False
    first_sign_s = min(recovery.first_output_s, recovery.first_checkpoint_s or inf)
    return recovery.effect_at_s + first_sign_s < healed_s


def _is_drained(history: History, window: FaultWindow) -> bool:
    """Whether nothing was sent after the heal and the run drained."""
    if window.healed_s is None:
        return False
    loaded_s = _loaded_s(history) - window.healed_s
    drained = history.first(RunDrained, after_ns=_ns(window.healed_s))
    return loaded_s <= RECORDED_LATER_S and drained is not None


def _last_heal_s(group: Sequence[FaultWindow]) -> float | None:
    """When the last of them was healed; None where the heal of one was not verified."""
    healed = [window.healed_s for window in group if window.healed_s is not None]
    return max(healed) if len(healed) == len(group) else None


def _recovery(
    whole: History,
    metrics: Path,
    window: FaultWindow,
    until_s: float,
    windows: tuple[FaultWindow, ...],
    healed_s: float | None,
    only_files: bool,
) -> RecoveryPhases:
    watched = History(event for event in whole if event.at_s < until_s)
    effect_s = window.in_effect_s or window.called_s
    earlier = _unrecovered_failure(whole, window)
    unattributed = _unattributed_failure(watched, window, earlier, healed_s, only_files)
    own = _history_before(watched, unattributed)
    events = _recovery_events(own, window, earlier, only_files)

    def since_ns(at_ns: int) -> float:
        return max(0, at_ns - _ns(effect_s)) / 1e9

    def since(event: Event | None) -> float | None:
        return None if event is None else since_ns(event.at_ns)

    return RecoveryPhases(
        fault=window.fault,
        step=window.step,
        effect_at_s=effect_s,
        until_s=None if until_s == inf else until_s - effect_s,
        watched_s=min(until_s, _last_s(whole)) - effect_s,
        loaded_s=min(until_s, _loaded_s(whole)) - effect_s,
        overlaps=tuple(each.fault for each in overlapping(window, windows)),
        detected_s=since(
            _earliest(events.failures[0] if events.failures else None, *events.restores)
        ),
        restarted_s=None if events.ran_ns is None else since_ns(events.ran_ns),
        restored_s=since(events.restores[-1] if events.restores else None),
        first_output_s=since(events.output),
        lag_normal_s=lag_normal_s(whole, metrics, effect_s),
        first_checkpoint_s=since(events.checkpoint),
        drained=_is_drained(whole, window),
        unclear=_contradiction(own, events)
        or _ran_unseen(own, events)
        or _contradicted_trigger(own, window, events)
        or _unverified_heal(own, window, events, only_files),
        other_cause=_down_before(whole, window, events) or _ended_outside(whole, window, events),
        uncertainty=_never_recovered(watched, whole, unattributed)
        or _still_failed(whole, earlier, events)
        or _silent_outputs(whole, window, events, healed_s),
    )


@dataclass(frozen=True, kw_only=True)
class _RecoveryEvents:
    """The events of a recovery; None where one did not happen."""

    failures: Sequence[JobEvent]
    """The reports of failures, in order."""
    restores: Sequence[JobRestored]
    ran_ns: int | None
    """When every task ran again, which may have been observed later."""
    output: OutputSeen | CheckpointCompleted | None
    checkpoint: CheckpointCompleted | None

    @property
    def back_ns(self) -> int | None:
        """When both the first output and the first checkpoint had happened."""
        if self.output is None or self.checkpoint is None:
            return None
        return max(self.output.at_ns, self.checkpoint.at_ns)


def _recovery_events(
    history: History, window: FaultWindow, earlier: JobEvent | None, only_files: bool
) -> _RecoveryEvents:
    """The events after a fault; `earlier` is the result of `_unrecovered_failure`."""
    called_ns = _ns(window.called_s)
    failures = _failures_since(history, called_ns)
    running = running_after(history, failures[-1]) if failures else None
    restores = [e for e in history.of(JobRestored) if failures and e.at_ns >= called_ns]
    ran_ns = ran_by_ns(history, failures[-1], running) if running else None
    resumed_ns = ran_ns
    restored_ns = restores[-1].at_ns if restores else None
    if not failures:
        resumed_ns, restored_ns = _resumed_without_failure(history, window, earlier)
    commits = list(checkpoints_since(history, restored_ns, resumed_ns))
    output: OutputSeen | CheckpointCompleted | None
    if only_files:
        output = next((e for e in commits if e.value.get("input_rows", 1)), None)
    else:
        output = next(iter(_outputs_since(history, resumed_ns)), None)
    checkpoint = next(iter(commits), None)
    return _RecoveryEvents(
        failures=failures,
        restores=restores,
        ran_ns=ran_ns,
        output=output,
        checkpoint=checkpoint,
    )


def _resumed_without_failure(
    history: History, window: FaultWindow, earlier: JobEvent | None
) -> tuple[int | None, int | None]:
    """(when the system resumed from a fault without a failure, when state was restored for it). It
    resumes with the effect, but not before the job recovered from an `earlier` failure; the restore
    is of that failure, None without one. An output that grew in the first second may have been
    committed before the effect, so it only counts if the fault was healed by then."""
    if window.healed_s is None:
        return None, None
    healed_ns = _ns(window.healed_s)
    effect_s = window.called_s if window.in_effect_s is None else window.in_effect_s
    acting_ns = min(healed_ns, _ns(effect_s + RECORDED_LATER_S))
    if earlier is None:
        return acting_ns, None
    if (running := running_after(history, earlier)) is None:
        return healed_ns, None
    restored = [e.at_ns for e in history.of(JobRestored) if e.at_ns >= earlier.at_ns]
    return max(acting_ns, running.at_ns), max(acting_ns, restored[-1]) if restored else None


def _unrecovered_failure(history: History, window: FaultWindow) -> JobEvent | None:
    """The failure from which the job had not recovered when the fault was called."""
    called_ns = _ns(window.called_s)
    failures = [e for e in _failures_since(history, 0) if not isinstance(e, ExecutorLost)]
    earlier = next((event for event in reversed(failures) if event.at_ns < called_ns), None)
    running = None if earlier is None else running_after(history, earlier)
    return None if running is not None and running.at_ns < called_ns else earlier


def _unattributed_failure(
    history: History,
    window: FaultWindow,
    earlier: JobEvent | None,
    healed_s: float | None,
    only_files: bool,
) -> JobEvent | None:
    """The first failure that is not attributed to the fault. What the system did while the fault
    acted does not show that it was back."""
    if healed_s is None:
        return None
    from_heal = replace(window, in_effect_s=window.healed_s)
    failures = _failures_since(history, _ns(window.called_s))
    first = {event.at_ns: event for event in reversed(failures)}

    def was_back(at_ns: int, failure_ns: int) -> bool:
        if at_ns < _ns(healed_s):
            return False
        before = _history_before(history, first[failure_ns])
        back_ns = _recovery_events(before, from_heal, earlier, only_files).back_ns
        return back_ns is not None and back_ns <= at_ns

    found_ns = first_unattributed(sorted(first), was_back)
    return None if found_ns is None else first[found_ns]


def _history_before(history: History, end: Event | None) -> History:
    """The events before `end`; all events without it."""
    if end is None:
        return history
    return History(event for event in history if event.index < end.index)


def _contradiction(history: History, events: _RecoveryEvents) -> str:
    """A message if a job that had failed for good is recorded to run later; else empty."""
    for end in events.failures:
        if isinstance(end, JobEnded) and any(
            event.index > end.index and event.job == end.job for event in history.of(JobRunning)
        ):
            return f"the job {end.state} at {end.at_s:.1f} s and is recorded to run later"
    return ""


def _ran_unseen(history: History, events: _RecoveryEvents) -> str:
    """A message if the stamp of a checkpoint alone shows that the job ran again after its last
    failure; else empty. Flink triggers a checkpoint only when all tasks run."""
    if not events.failures or events.ran_ns is not None or clock_moved(history):
        return ""
    last = events.failures[-1]
    for event in checkpoints_since(history, None, last.at_ns):
        if event.job == last.job and event.trigger_ms and not event.is_micro_batch:
            return (
                "the job failed and was not seen to run again, but checkpoint "
                f"{event.checkpoint}, triggered after it, completed"
            )
    return ""


def _contradicted_trigger(history: History, window: FaultWindow, events: _RecoveryEvents) -> str:
    """A message if the first checkpoint of the recovery, or one that completed before it, is
    recorded with several triggers, so that it may be the first one or not; else empty."""
    since_ns = events.failures[-1].at_ns if events.failures else _ns(window.called_s)
    last = inf if events.checkpoint is None else events.checkpoint.index
    return next(
        (
            each.message
            for each in contradicted_triggers(history)
            if each.completed.at_ns >= since_ns and each.completed.index <= last
        ),
        "",
    )


def _unverified_heal(
    history: History, window: FaultWindow, events: _RecoveryEvents, only_files: bool
) -> str:
    """A message if output continued and the heal was not verified, so that its recovery has no
    start; else empty."""
    called_ns = _ns(window.called_s)
    output = (
        checkpoints_since(history, None, called_ns)
        if only_files
        else _outputs_since(history, called_ns)
    )
    if window.healed_s is not None or events.failures or next(iter(output), None) is None:
        return ""
    return "output continued, and the heal of the fault was not verified"


def _never_recovered(watched: History, whole: History, unattributed: JobEvent | None) -> str:
    """A message if the job neither ran nor completed a checkpoint after failures that are not
    attributed to the fault, also not after the next fault; else empty."""
    if unattributed is None:
        return ""
    last = _failures_since(watched, unattributed.at_ns)[-1]
    if running_after(whole, last) or next(checkpoints_since(whole, None, last.at_ns), None):
        return ""
    return f"the job failed again at {last.at_s:.1f} s and was not seen to run again"


def _still_failed(whole: History, earlier: JobEvent | None, events: _RecoveryEvents) -> str:
    """A message if the job neither ran nor completed a checkpoint after a failure from before the
    fault, without a new failure; else empty. Its output is then of other producers, or from
    before."""
    if events.failures or earlier is None or running_after(whole, earlier):
        return ""
    if next(checkpoints_since(whole, None, earlier.at_ns), None) is not None:
        return ""
    return f"the job had failed at {earlier.at_s:.1f} s and was not seen to run again"


def _down_before(whole: History, window: FaultWindow, events: _RecoveryEvents) -> str:
    """A message if the job was down by itself when the fault was called, and did not complete a
    checkpoint before it failed again; else empty."""
    failed_ns = down_by_itself_since_ns(whole, _ns(window.called_s))
    if failed_ns is None:
        return ""
    back = next(checkpoints_since(whole, None, failed_ns), None)
    if back is not None and any(back.at_ns < each.at_ns for each in events.failures):
        return ""
    return down_message(failed_ns)


def _ended_outside(whole: History, window: FaultWindow, events: _RecoveryEvents) -> str:
    """A message if a node ended shortly before the fault or before the system was back, which no
    fault did; else empty."""
    since_ns = _ns(window.called_s - SETTLED_S)
    until_ns = inf if events.back_ns is None else events.back_ns
    ended = (each for each in ended_from_outside(whole) if since_ns <= each.at_ns <= until_ns)
    return next((f"{how(each)} at {each.at_s:.1f} s, which no fault did" for each in ended), "")


def _silent_outputs(
    whole: History, window: FaultWindow, events: _RecoveryEvents, healed_s: float | None
) -> str:
    """A message if outputs are silent since the system was back and all faults were healed; else
    empty. Growth after a later fault shows that an output is not silent."""
    if events.back_ns is None:
        return ""
    since_ns = max(events.back_ns, 0 if healed_s is None else _ns(healed_s))
    effect_ns = _ns(window.in_effect_s or window.called_s)
    silent = silent_outputs(whole, _ns(window.called_s), effect_ns, since_ns)
    return f"no further output was seen of {', '.join(silent)}" if silent else ""


def _ns(moment_s: float) -> int:
    return round(moment_s * 1e9)


def _last_s(events: Sequence[Event]) -> float:
    return max(event.at_s for event in events)


def _loaded_s(history: History) -> float:
    return (load_ended_ns(history) or 0) / 1e9


def _earliest(*events: Event | None) -> Event | None:
    """The earliest event. States and checkpoints are polled separately, so a restore may be
    observed a moment before its failure; it proves the detection too."""
    return min((e for e in events if e is not None), key=lambda e: e.at_ns, default=None)


def _failures_since(history: History, after_ns: int) -> Sequence[JobEvent]:
    """The reports of failures from a moment on, in order."""
    recorded = history.of(*_FAILURES)
    found = [event for event in recorded if event.at_ns >= after_ns and is_failure(event)]
    return sorted(found, key=lambda event: event.at_ns)


def _outputs_since(history: History, after_ns: int | None) -> Sequence[OutputSeen]:
    """The growth of committed outputs from a moment on, in order; empty where the moment is not
    known."""
    if after_ns is None:
        return ()
    recorded = history.of(OutputSeen)
    grown = [event for event in recorded if event.at_ns >= after_ns and has_grown(event)]
    return sorted(grown, key=lambda event: event.at_ns)
