"""The phases of a job that restarts or gets another parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamquake.faults.fault import faults
from streamquake.harness.coverage.checkpoint_kinds import CheckpointKinds
from streamquake.harness.coverage.phase_window import Moment, PhaseWindow
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint
from streamquake.harness.verdict.evidence.restores import Restart, restarts_of
from streamquake.reports.coverage.cell import CheckpointKind, Phase
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged

STARTING = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING")
"""The states of a subtask that does not run yet."""
PARALLELISM = "parallelism"
"""What a fault touches that rescales the running job."""


def restart_windows(
    history: History, checkpoints: Sequence[Checkpoint], kinds: CheckpointKinds
) -> Iterator[PhaseWindow]:
    """Restart and restore of every restart of every job, and every rescale."""
    restarts = restarts_of(history)
    for number, restart in enumerate(restarts):
        kind = kinds.restored_by(restart)
        yield from _of_restart(history, restart, restarts[number + 1 :], checkpoints, kind)
        if restart.former_parallelism not in (None, restart.parallelism):
            yield _rescale(history, restart.broke_s, restart.running_s)
    for window in fault_windows(history):
        fault = faults.get(window.fault)
        if fault is not None and fault.touches == PARALLELISM:
            yield _rescale(history, window.called_s, window.in_effect_s)
            if window.heal_called_s is not None:
                yield _rescale(history, window.heal_called_s, window.healed_s)


def _of_restart(
    history: History,
    restart: Restart,
    later: Sequence[Restart],
    checkpoints: Sequence[Checkpoint],
    kind: CheckpointKind,
) -> Iterator[PhaseWindow]:
    broke, restored_s = Moment.failed(_ns(restart.broke_s)), restart.restored_s
    end = _end_of(history, restart, later, checkpoints)
    if restored_s is None:
        yield _window(Phase.RESTART, kind, restart, broke, end)
        return
    restored = Moment.stamped(_ns(restored_s))
    yield _window(Phase.RESTART, kind, restart, broke, restored)
    yield _window(Phase.RESTORE, kind, restart, restored, end)


def _end_of(
    history: History,
    restart: Restart,
    later: Sequence[Restart],
    checkpoints: Sequence[Checkpoint],
) -> Moment:
    """When every task ran again: at the latest by the next checkpoint, which Flink triggers only
    when all tasks run, or by the next failure. A short run may not have been observed."""
    since_s = restart.broke_s if restart.restored_s is None else restart.restored_s
    ends_s = [each.broke_s for each in later if each.job == restart.job][:1]
    ends_s += [each.began_s for each in checkpoints if _shows_all_running(each, restart)][:1]
    if restart.running_s is not None:
        ends_s.append(restart.running_s)
    return _all_running(history, since_s, min(ends_s)) if ends_s else Moment.unproven()


def _shows_all_running(checkpoint: Checkpoint, restart: Restart) -> bool:
    since_s = restart.broke_s if restart.restored_s is None else restart.restored_s
    of_job = checkpoint.job == restart.job and not checkpoint.micro_batch
    return of_job and checkpoint.began_s > since_s


def _rescale(history: History, since_s: float, running_s: float | None) -> PhaseWindow:
    """From the order to rescale until every subtask runs."""
    running = Moment.unproven() if running_s is None else _all_running(history, since_s, running_s)
    begin = Moment.exact(_ns(since_s))
    return PhaseWindow(phase=Phase.RESCALE, kind=CheckpointKind.NONE, begin=begin, end=running)


def _all_running(history: History, since_s: float, running_s: float) -> Moment:
    """When every task runs: after the last sight of one that does not, and before it is seen."""
    since_ns, until_ns = _ns(since_s), _ns(running_s)
    seen = (
        event.at_ns
        for event in history.of(TaskChanged)
        if event.state in STARTING and since_ns <= event.at_ns <= until_ns
    )
    return Moment(earliest_ns=max(seen, default=0), latest_ns=until_ns)


def _window(
    phase: Phase, kind: CheckpointKind, restart: Restart, begin: Moment, end: Moment
) -> PhaseWindow:
    return PhaseWindow(
        phase=phase,
        kind=kind,
        begin=begin,
        end=end,
        begins_with_failure=phase is Phase.RESTART,
        job=restart.job,
    )


def _ns(at_s: float) -> int:
    return round(at_s * 1e9)
