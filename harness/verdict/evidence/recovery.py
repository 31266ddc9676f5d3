"""Recovery taken apart: the moments between a fault's effect and the system being itself again.

Each fault that acted has a recovery of its own, from its effect until the effect of the next fault:
what the system does after that is the answer to the next one too. Where a fault acted before the
system was back from the former one, the former recovery is cut off, and only the latter can tell
that the system came back.

Metric definitions: detection is the first failing or restarting state, failed end, or lost executor
that the engine reports once the fault was called (an engine may know before the harness sees the
effect), the restart is every task of that job, or of one that took its place, running again and the
restore the last time that state was handed out for it, lag is back when it is at or below its 95th
percentile from before the fault for good (of micro-batches: see `lag`), the first checkpoint is the
first completed one, no savepoint, that was triggered after the restart (or, where nothing failed,
after the heal). A job that failed and does not run again has not resumed, whatever was healed.
Files are not watched as they come: of a job that writes nothing else, the first output is what the
first such checkpoint committed.

A failure that comes when all faults were healed and the system was itself again for long is no
answer to the fault; what comes from then on belongs to no recovery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path

from streamquake.harness.verdict.evidence.lag import lag_normal_s
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.restores import is_failure
from streamquake.harness.verdict.evidence.silent_outputs import grew, silent_outputs
from streamquake.reports.record.checkpoint_events import CheckpointCompleted, CheckpointTriggered
from streamquake.reports.record.event import MICRO_BATCH, Event
from streamquake.reports.record.fault_windows import (
    FaultWindow,
    acted_windows,
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
    JobSubmitted,
)
from streamquake.reports.record.run_events import OutputSeen, RecordsSent, RunDrained

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
    "unclear",
    "uncertainty",
)
_FAILURES = (JobFailing, JobRestarting, ExecutorLost, JobEnded)
"""What an engine reports when it has noticed a failure; also one that leaves the job as it is, but
for the tasks that an executor ran. Of ends, only failed ones count."""
SETTLED_S = 30.0
"""How long all faults must have been healed and the system have been back before a failure is
taken for another's: what a fault did may show late, such as by a time-out."""

NOTED_S = 1.0
"""How much later than it was sent a record may be noted."""


@dataclass(frozen=True, kw_only=True)
class RecoveryPhases:
    """Seconds from a fault's effect to each moment, 0 for what the engine knew before that was
    seen; None where it did not come before the next fault, or before the end."""

    fault: str
    step: int
    effect_at_s: float
    until_s: float | None
    """Seconds from the effect to the call of the next fault; None for the last one."""
    watched_s: float
    """Seconds from the effect for which the run went on, at most until the next fault."""
    loaded_s: float
    """Seconds from the effect for which records were sent, at most until the next fault."""
    overlaps: tuple[str, ...]
    """Faults that acted at the same time."""
    detected_s: float | None
    restarted_s: float | None
    restored_s: float | None
    first_output_s: float | None
    lag_normal_s: float | None
    first_checkpoint_s: float | None
    from_heal: bool = False
    """Whether it counts from the fault's heal in place of its effect."""
    was_back: bool = False
    """Of one that counts from the heal: whether the system was back from the fault before that."""
    drained: bool = False
    """Whether nothing was sent after the heal any more and the run drained: without a failure
    nothing is left to ask."""
    unclear: str = ""
    """Why the record does not show when the system came back."""
    uncertainty: str = ""
    """What speaks against its having come back for good."""

    def to_json(self) -> Mapping[str, float | None]:
        """The phases; the moment of the effect itself stands with its fault."""
        phases = asdict(self)
        for name in _NO_PHASES:
            del phases[name]
        return {key: value if value is None else round(value, 3) for key, value in phases.items()}


def recoveries_of(
    history: History, metrics: Path, *, only_files: bool
) -> tuple[RecoveryPhases, ...]:
    """The recovery after each fault that acted, in the order of their effects."""
    if not (windows := acted_windows(history)):
        return ()
    history = in_engine_order(history)
    ends = [*(later.called_s for _, later in pairwise(windows)), inf]
    gone = {each: _gone_s(group) for group in overlapping_groups(windows) for each in group}
    return tuple(
        _recovery(history, metrics, window, until_s, windows, gone[window], only_files)
        for window, until_s in zip(windows, ends, strict=True)
    )


def overtaken_of(
    history: History, metrics: Path, *, only_files: bool
) -> tuple[RecoveryPhases, ...]:
    """Of each fault after which the job failed, but for the last, what came until the next one took
    effect: that may have been called long before, and counts from its effect only."""
    windows = acted_windows(history)
    history = in_engine_order(history)
    found = (
        _recovery(history, metrics, window, later.in_effect_s or inf, windows, None, only_files)
        for window, later in pairwise(windows)
    )
    return tuple(each for each in found if each.detected_s is not None)


def returns_of(history: History, metrics: Path, *, only_files: bool) -> tuple[RecoveryPhases, ...]:
    """Of each group of faults, the recovery from its last heal, where no recovery above asks what
    came after it: that was the heal of another fault than the last in effect, or the system was
    back from a failure before it.

    A heal after which nothing was sent any more asks for nothing but that the run drained.
    """
    history = in_engine_order(history)
    windows = acted_windows(history)
    groups = overlapping_groups(windows)
    injected = recoveries_of(history, metrics, only_files=only_files)
    own = dict(zip(windows, injected, strict=True))
    found = []
    for number, group in enumerate(groups):
        gone_s = _gone_s(group)
        was_back = gone_s == group[-1].healed_s
        if gone_s is None or (was_back and not _was_back_before(own[group[-1]], gone_s)):
            continue
        until_s = groups[number + 1][0].called_s if group is not groups[-1] else inf
        last = next(window for window in group if window.healed_s == gone_s)
        healed = replace(last, called_s=gone_s, in_effect_s=gone_s)
        arrived = _recovery(history, metrics, healed, until_s, (), gone_s, only_files)
        if not arrived.drained:
            found.append(replace(arrived, from_heal=True, was_back=was_back))
    return tuple(found)


def _was_back_before(arrived: RecoveryPhases, gone_s: float) -> bool:
    """Whether output or a checkpoint came after a failure and before the last heal."""
    if arrived.detected_s is None or arrived.first_output_s is None:
        return False
    shown_s = min(arrived.first_output_s, arrived.first_checkpoint_s or inf)
    return arrived.effect_at_s + shown_s < gone_s


def _drained(history: History, window: FaultWindow) -> bool:
    """Whether nothing was sent after the heal any more and the run drained."""
    if window.healed_s is None:
        return False
    loaded_s = _last_s(history.of(RecordsSent)) - window.healed_s
    drained = history.first(RunDrained, after_ns=_ns(window.healed_s))
    return loaded_s <= NOTED_S and drained is not None


def _gone_s(group: Sequence[FaultWindow]) -> float | None:
    """When the last of them was healed; None where one was not seen to be."""
    healed = [window.healed_s for window in group if window.healed_s is not None]
    return max(healed) if len(healed) == len(group) else None


def _recovery(
    whole: History,
    metrics: Path,
    window: FaultWindow,
    until_s: float,
    windows: tuple[FaultWindow, ...],
    gone_s: float | None,
    only_files: bool,
) -> RecoveryPhases:
    watched = History(event for event in whole if event.at_s < until_s)
    effect_s = window.in_effect_s or window.called_s
    earlier = _under_way(whole, window)
    foreign = _foreign(watched, window, earlier, gone_s, only_files)
    own = _before(watched, foreign)
    arrived = _moments(own, window, earlier, only_files)

    def since(event: Event | None) -> float | None:
        return None if event is None else max(0, event.at_ns - _ns(effect_s)) / 1e9

    return RecoveryPhases(
        fault=window.fault,
        step=window.step,
        effect_at_s=effect_s,
        until_s=None if until_s == inf else until_s - effect_s,
        watched_s=min(until_s, _last_s(whole)) - effect_s,
        loaded_s=min(until_s, _last_s(whole.of(RecordsSent))) - effect_s,
        overlaps=tuple(each.fault for each in overlapping(window, windows)),
        detected_s=since(_earliest(arrived.broke[0] if arrived.broke else None, *arrived.restores)),
        restarted_s=since(arrived.running),
        restored_s=since(arrived.restores[-1] if arrived.restores else None),
        first_output_s=since(arrived.output),
        lag_normal_s=lag_normal_s(whole, metrics, effect_s),
        first_checkpoint_s=since(arrived.checkpoint),
        drained=_drained(whole, window),
        unclear=_contradiction(own, arrived) or _unhealed(own, window, arrived, only_files),
        uncertainty=_never_back(watched, whole, foreign)
        or _still_failed(whole, earlier, arrived)
        or _silent(whole, window, arrived, gone_s),
    )


@dataclass(frozen=True, kw_only=True)
class _RecoveryEvents:
    """The events that make up a recovery, None where one did not come."""

    broke: Sequence[JobEvent]
    """What reported a failure, in order."""
    restores: Sequence[JobRestored]
    running: JobRunning | None
    output: OutputSeen | CheckpointCompleted | None
    checkpoint: CheckpointCompleted | None

    @property
    def back_ns(self) -> int | None:
        """When output had come and a checkpoint had completed."""
        if self.output is None or self.checkpoint is None:
            return None
        return max(self.output.at_ns, self.checkpoint.at_ns)


def _moments(
    history: History, window: FaultWindow, earlier: JobEvent | None, only_files: bool
) -> _RecoveryEvents:
    """What came after a fault; `earlier` as `_under_way` finds it."""
    called_ns = _ns(window.called_s)
    broke = _breaks(history, called_ns)
    running = _running_after(history, broke[-1]) if broke else None
    restores = [e for e in history.of(JobRestored) if broke and e.at_ns >= called_ns]
    resumed_ns = running.at_ns if running else None
    restored_ns = restores[-1].at_ns if restores else None
    if not broke:
        resumed_ns, restored_ns = _healed(history, window, earlier)
    commits = list(_commits(history, restored_ns, resumed_ns))
    output: OutputSeen | CheckpointCompleted | None
    if only_files:
        output = next((e for e in commits if e.value.get("input_rows", 1)), None)
    else:
        output = next(iter(_outputs(history, resumed_ns)), None)
    checkpoint = next(iter(commits), None)
    return _RecoveryEvents(
        broke=broke, restores=restores, running=running, output=output, checkpoint=checkpoint
    )


def _healed(
    history: History, window: FaultWindow, earlier: JobEvent | None
) -> tuple[int | None, int | None]:
    """When the system resumed from a fault after which nothing failed: with its heal, and no sooner
    than the job ran again of a failure from before; and since when state was restored of that one,
    None without one."""
    if window.healed_s is None:
        return None, None
    healed_ns = _ns(window.healed_s)
    running = None if earlier is None else _running_after(history, earlier)
    if earlier is None or running is None:
        return healed_ns, None
    restored = [e.at_ns for e in history.of(JobRestored) if e.at_ns >= earlier.at_ns]
    return max(healed_ns, running.at_ns), max(healed_ns, restored[-1]) if restored else None


def _under_way(history: History, window: FaultWindow) -> JobEvent | None:
    """The failure from which the job had not come back when the fault was called."""
    called_ns = _ns(window.called_s)
    breaks = [e for e in _breaks(history, 0) if not isinstance(e, ExecutorLost)]
    earlier = next((event for event in reversed(breaks) if event.at_ns < called_ns), None)
    running = None if earlier is None else _running_after(history, earlier)
    return None if running is not None and running.at_ns < called_ns else earlier


def _foreign(
    history: History,
    window: FaultWindow,
    earlier: JobEvent | None,
    gone_s: float | None,
    only_files: bool,
) -> JobEvent | None:
    """The first failure that is no answer to the fault."""
    if gone_s is None:
        return None
    settled_ns = round(SETTLED_S * 1e9)
    last_ns = _ns(gone_s)
    for broke in _breaks(history, _ns(window.called_s)):
        quiet_ns, last_ns = broke.at_ns - last_ns, max(last_ns, broke.at_ns)
        if quiet_ns >= settled_ns:
            back_ns = _moments(_before(history, broke), window, earlier, only_files).back_ns
            if back_ns is not None and broke.at_ns - back_ns >= settled_ns:
                return broke
    return None


def _before(history: History, end: Event | None) -> History:
    """The events before one; all without it."""
    if end is None:
        return history
    return History(event for event in history if event.index < end.index)


def _contradiction(history: History, arrived: _RecoveryEvents) -> str:
    """That a job which had failed for good is recorded to run again."""
    for end in arrived.broke:
        if isinstance(end, JobEnded) and any(
            event.index > end.index and event.job == end.job for event in history.of(JobRunning)
        ):
            return f"the job {end.state} at {end.at_s:.1f} s and is recorded to run later"
    return ""


def _unhealed(
    history: History, window: FaultWindow, arrived: _RecoveryEvents, only_files: bool
) -> str:
    """That output went on, and it is not known from when on it does so without the fault."""
    healed = window.healed_s is not None and window.healed_s <= _last_s(history)
    called_ns = _ns(window.called_s)
    seen = _commits(history, None, called_ns) if only_files else _outputs(history, called_ns)
    if healed or arrived.broke or next(iter(seen), None) is None:
        return ""
    return "output went on, and the fault was not seen to be healed"


def _never_back(watched: History, whole: History, foreign: JobEvent | None) -> str:
    """That the job neither ran nor took a checkpoint any more, also after the next fault, after
    failures that are no answer to the fault."""
    if foreign is None:
        return ""
    last = _breaks(watched, foreign.at_ns)[-1]
    if _running_after(whole, last) or next(_commits(whole, None, last.at_ns), None):
        return ""
    return f"the job failed again at {last.at_s:.1f} s and was not seen to run again"


def _still_failed(whole: History, earlier: JobEvent | None, arrived: _RecoveryEvents) -> str:
    """That the job neither ran nor took a checkpoint any more after a failure from before the
    fault, and that nothing failed again: what came out were others' records, or earlier ones."""
    if arrived.broke or earlier is None or _running_after(whole, earlier):
        return ""
    if next(_commits(whole, None, earlier.at_ns), None) is not None:
        return ""
    return f"the job had failed at {earlier.at_s:.1f} s and was not seen to run again"


def _silent(
    whole: History, window: FaultWindow, arrived: _RecoveryEvents, gone_s: float | None
) -> str:
    """That outputs came no more once the system was back and all faults were healed: what comes
    after a later fault shows that they had not ceased."""
    if arrived.back_ns is None:
        return ""
    since_ns = max(arrived.back_ns, 0 if gone_s is None else _ns(gone_s))
    silent = silent_outputs(whole, _ns(window.called_s), since_ns)
    return f"no output was seen any more of {', '.join(silent)}" if silent else ""


def _ns(moment_s: float) -> int:
    return round(moment_s * 1e9)


def _last_s(events: Sequence[Event]) -> float:
    return max((event.at_s for event in events), default=0.0)


def _earliest(*events: Event | None) -> Event | None:
    """States and checkpoints are looked at apart, so that a restore may be seen a moment before the
    failure that it follows; a job that restores has noticed."""
    return min((e for e in events if e is not None), key=lambda e: e.at_ns, default=None)


def _breaks(history: History, after_ns: int) -> Sequence[JobEvent]:
    """What reports a failure from a moment on, in order."""
    recorded = history.of(*_FAILURES)
    found = [event for event in recorded if event.at_ns >= after_ns and is_failure(event)]
    return sorted(found, key=lambda event: event.at_ns)


def _running_after(history: History, broke: JobEvent) -> JobRunning | None:
    """When every task ran of the job that broke, or of one that was submitted in its place. Of a
    job that has failed for good, only the latter."""
    own = set() if isinstance(broke, JobEnded) else {broke.job}
    later = {e.job for e in history.of(JobSubmitted) if e.index > broke.index}
    running = (
        event
        for event in history.of(JobRunning)
        if event.at_ns >= broke.at_ns and (None in own or event.job in {None, *own, *later})
    )
    return min(running, key=lambda event: event.at_ns, default=None)


def _outputs(history: History, after_ns: int | None) -> Sequence[OutputSeen]:
    """The growths of committed output from a moment on, in order; none where it is not known."""
    if after_ns is None:
        return ()
    seen = history.of(OutputSeen)
    grown = [event for event in seen if event.at_ns >= after_ns and grew(event)]
    return sorted(grown, key=lambda event: event.at_ns)


def _commits(
    history: History, restored_ns: int | None, resumed_ns: int | None
) -> Iterator[CheckpointCompleted]:
    """The completed checkpoints that were also triggered after the system resumed. A micro-batch is
    triggered before its tasks run: of one it is enough that state was restored. A savepoint shows
    that all tasks answer, and not that the job goes on taking checkpoints."""
    if resumed_ns is None:
        return
    begun_ns = {MICRO_BATCH: resumed_ns if restored_ns is None else restored_ns}
    triggered = {
        e.checkpoint
        for e in history.of(CheckpointTriggered)
        if e.at_ns >= begun_ns.get(e.type or "", resumed_ns) and "SAVEPOINT" not in (e.type or "")
    }
    for event in history.of(CheckpointCompleted):
        if event.at_ns >= resumed_ns and event.checkpoint in triggered:
            yield event
