"""Recovery taken apart: the moments between a fault's effect and the system being itself again.

Each fault that acted has a recovery of its own, from its effect until the effect of the next fault:
what the system does after that is the answer to the next one too. Where a fault acted before the
system was back from the former one, the former recovery is cut off, and only the latter can tell
that the system came back.

Metric definitions: detection is the first failing or restarting state, or lost executor, that the
engine reports once the fault was called (an engine may know before the harness sees the effect),
the restart is every task running again and the restore the last time that state was handed out for
it, lag is back when it is at or below its 95th percentile from before the fault for good (of
micro-batches: see `lag`), the first checkpoint is the first completed one that was triggered after
the restart (or, where nothing failed, after the heal). A job that failed and does not run again
has not resumed, whatever was healed. Files are not watched as they come: of a job that writes
nothing else, the first output is what the first such checkpoint committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import inf
from pathlib import Path

from streamquake.harness.evidence.lag import lag_normal_s
from streamquake.reports.event import MICRO_BATCH, Action, Event
from streamquake.reports.fault_windows import FaultWindow, acted_windows, overlapping
from streamquake.reports.history import History

_NO_PHASES = (
    "fault", "step", "effect_at_s", "until_s", "watched_s", "loaded_s", "overlaps",
)  # fmt: skip
DETECTED = (Action.JOB_FAILING, Action.JOB_RESTARTING, Action.EXECUTOR_LOST)
"""What an engine tells when it has noticed a failure; also one that leaves the job as it is, but
for the tasks that an executor ran."""


@dataclass(frozen=True, kw_only=True)
class Recovery:
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

    def to_json(self) -> Mapping[str, float | None]:
        """The phases; the moment of the effect itself stands with its fault."""
        phases = asdict(self)
        for name in _NO_PHASES:
            del phases[name]
        return {key: value if value is None else round(value, 3) for key, value in phases.items()}


def recoveries_of(history: History, metrics: Path, *, only_files: bool) -> tuple[Recovery, ...]:
    """The recovery after each fault that acted, in the order of their effects."""
    if not (windows := acted_windows(history)):
        return ()
    ends = [*(later.called_s for _, later in pairwise(windows)), inf]
    return tuple(
        _recovery(history, metrics, window, until_s, windows, only_files)
        for window, until_s in zip(windows, ends, strict=True)
    )


def _recovery(
    whole: History, metrics: Path, window: FaultWindow, until_s: float,
    windows: tuple[FaultWindow, ...], only_files: bool,
) -> Recovery:  # fmt: skip
    history = History(event for event in whole if event.at_s < until_s)
    effect_s = window.in_effect_s or window.called_s
    effect_ns, called_ns = round(effect_s * 1e9), round(window.called_s * 1e9)
    detected = history.first(*DETECTED, after_ns=called_ns)
    running = _last_running(history, detected)
    restores = [e for e in history.of(Action.JOB_RESTORED) if detected and e.at_ns >= called_ns]
    restored = restores[-1] if restores else None
    healed = None if window.healed_s is None else round(window.healed_s * 1e9)
    resumed_ns = healed if detected is None else running.at_ns if running else None
    commits = list(_commits(history, restored.at_ns if restored else None, resumed_ns))
    if only_files:
        output = next((e for e in commits if e.value.get("input_rows", 1)), None)
    else:
        output = _after(history, Action.OUTPUT_SEEN, resumed_ns)

    def since(event: Event | None) -> float | None:
        return None if event is None else max(0, event.at_ns - effect_ns) / 1e9

    return Recovery(
        fault=window.fault,
        step=window.step,
        effect_at_s=effect_s,
        until_s=None if until_s == inf else until_s - effect_s,
        watched_s=min(until_s, _last_s(whole)) - effect_s,
        loaded_s=min(until_s, _last_s(whole.of(Action.SENT))) - effect_s,
        overlaps=tuple(each.fault for each in overlapping(window, windows)),
        detected_s=since(_earliest(detected, *restores)),
        restarted_s=since(running),
        restored_s=since(restored),
        first_output_s=since(output),
        lag_normal_s=lag_normal_s(whole, metrics, effect_s),
        first_checkpoint_s=since(next(iter(commits), None)),
    )


def _last_s(events: Sequence[Event]) -> float:
    return max((event.at_s for event in events), default=0.0)


def _earliest(*events: Event | None) -> Event | None:
    """States and checkpoints are looked at apart, so that a restore may be seen a moment before the
    failure that it follows; whoever restores has noticed."""
    return min((e for e in events if e is not None), key=lambda e: e.at_ns, default=None)


def _last_running(history: History, detected: Event | None) -> Event | None:
    """When every task ran again: after the last restart, if one restart followed another."""
    if detected is None:
        return None
    restarts = history.of(*DETECTED)
    return history.first(Action.JOB_RUNNING, after_ns=restarts[-1].at_ns)


def _after(history: History, action: Action, moment_ns: int | None) -> Event | None:
    return None if moment_ns is None else history.first(action, after_ns=moment_ns)


def _commits(history: History, restored_ns: int | None, resumed_ns: int | None) -> Iterator[Event]:
    """The completed checkpoints that were also triggered after the system resumed. A micro-batch is
    triggered before its tasks run: of one it is enough that state was restored."""
    if resumed_ns is None:
        return
    begun_ns = {MICRO_BATCH: resumed_ns if restored_ns is None else restored_ns}
    triggered = {
        e.value["checkpoint"]
        for e in history.of(Action.CHECKPOINT_TRIGGERED)
        if e.at_ns >= begun_ns.get(e.value.get("type", ""), resumed_ns)
    }
    for event in history.of(Action.CHECKPOINT_COMPLETED):
        if event.at_ns >= resumed_ns and event.value["checkpoint"] in triggered:
            yield event
