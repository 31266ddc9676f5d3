"""Recovery taken apart: the moments between a fault's effect and the system being itself again.

Metric definitions: detection is the first failing or restarting state, or lost executor, that the
engine reports once the fault was called (an engine may know before the harness sees the effect),
the restart is every task running again and the restore the last time that state was handed out for
it, lag is back when it is at or below its 95th percentile from before the fault for good (of
micro-batches: see `lag`), the first checkpoint is the first completed one that was triggered after
the restart (or, where nothing restarted, after the heal). Files are not watched as they come: of a
job that writes nothing else, the first output is what the first such checkpoint committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from streamquake.harness.evidence.lag import lag_normal_s
from streamquake.reports.event import MICRO_BATCH, Action, Event
from streamquake.reports.history import History

DETECTED = (Action.JOB_FAILING, Action.JOB_RESTARTING, Action.EXECUTOR_LOST)
"""What an engine tells when it has noticed a failure; also one that leaves the job as it is, but
for the tasks that an executor ran."""


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Seconds from the first fault's effect to each moment, 0 for what the engine knew before that
    was seen; None where it did not come."""

    effect_at_s: float
    detected_s: float | None
    restarted_s: float | None
    restored_s: float | None
    first_output_s: float | None
    lag_normal_s: float | None
    first_checkpoint_s: float | None

    def to_json(self) -> Mapping[str, float | None]:
        """The phases; the moment of the effect itself stands with its fault."""
        phases = asdict(self)
        del phases["effect_at_s"]
        return {key: value if value is None else round(value, 3) for key, value in phases.items()}


def recovery_of(history: History, metrics: Path, *, only_files: bool) -> Recovery | None:
    """The recovery after the first fault that bit, or None when none did."""
    struck = next(iter(history.of(Action.FAULT_IN_EFFECT)), None)
    if struck is None:
        return None
    effect_ns: int = struck.value["seen_ns"]
    called_ns: int = struck.value.get("called_ns", effect_ns)
    detected = history.first(*DETECTED, after_ns=called_ns)
    running = _last_running(history, detected)
    restores = [e for e in history.of(Action.JOB_RESTORED) if detected and e.at_ns >= called_ns]
    restored = restores[-1] if restores else None
    resumed = running or history.first(Action.FAULT_HEALED, after_ns=effect_ns)
    resumed_ns = resumed.at_ns if resumed else None
    commits = list(_commits(history, restored.at_ns if restored else None, resumed_ns))
    if only_files:
        output = next((e for e in commits if e.value.get("input_rows", 1)), None)
    else:
        output = _after(history, Action.OUTPUT_SEEN, resumed_ns)

    def since(event: Event | None) -> float | None:
        return None if event is None else max(0, event.at_ns - effect_ns) / 1e9

    return Recovery(
        effect_at_s=effect_ns / 1e9,
        detected_s=since(_earliest(detected, *restores)),
        restarted_s=since(running),
        restored_s=since(restored),
        first_output_s=since(output),
        lag_normal_s=lag_normal_s(history, metrics, effect_ns / 1e9),
        first_checkpoint_s=since(next(iter(commits), None)),
    )


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
