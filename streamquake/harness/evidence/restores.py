"""Restores as a history tells them: each restart of a job, what it was set back to, and the phases.

A restart begins with the first failure or restart that the engine reports, and ends when every task
runs again; a failure after state was handed out begins another one. Moments are the engine's own
stamps where it gives them: of two events seen by asking again and again, the later one may be seen
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamquake.harness.evidence.engine_clock import EngineClock
from streamquake.reports.event import Action, Event
from streamquake.reports.history import History

BREAKS = (Action.JOB_FAILING, Action.JOB_RESTARTING)
STEPS = (*BREAKS, Action.JOB_RESTORED, Action.JOB_RUNNING)


@dataclass(frozen=True, kw_only=True)
class Restart:
    """One restart of a job; seconds on the run's clock, None for what was not seen."""

    job: Any
    broke_s: float
    cause: str = ""
    submitted: bool = False
    """Whether it is the job's first start, from a savepoint or checkpoint it was given."""
    struck_s: float | None = None
    """When the last fault before it was seen to bite."""
    restored_s: float | None = None
    checkpoint: int | None = None
    """What it was set back to."""
    running_s: float | None = None
    initializing_ms: float | None = None
    """How long the slowest new attempt restored its state."""
    slowest: str = ""
    """Whose that is, as vertex name/subtask."""

    @property
    def where(self) -> str:
        return f"{'start' if self.submitted else 'restart'} at {self.broke_s:.1f} s"

    @property
    def phases(self) -> Mapping[str, float | None]:
        """Seconds each phase took: from the fault's effect until it was noticed, until state was
        handed out, until every task ran; and the last two together."""
        return {
            "detect_s": None if self.submitted else _between(self.struck_s, self.broke_s),
            "until_restored_s": _between(self.broke_s, self.restored_s),
            "until_running_s": _between(self.restored_s, self.running_s),
            "restart_s": _between(self.broke_s, self.running_s),
        }


@dataclass
class _Steps:
    """The steps of one restart while they are gathered."""

    first: bool = False
    """Whether the job did not run whole before."""
    breaks: list[Event] = field(default_factory=list)
    restored: Event | None = None
    running: Event | None = None


def restarts_of(history: History) -> tuple[Restart, ...]:
    """Every restart of every job, in order, and every first start that restored something."""
    clock = EngineClock(history)
    found = []
    for job in dict.fromkeys(event.value.get("job") for event in history.of(*STEPS)):
        own = [event for event in history.of(*STEPS) if event.value.get("job") == job]
        own.sort(key=clock.moment_ns)
        found += [_described(history, clock, job, steps) for steps in _gathered(own)]
    return tuple(sorted(found, key=lambda restart: restart.broke_s))


def _gathered(steps: Sequence[Event]) -> list[_Steps]:
    """The steps of each restart. That all tasks run is seen late: a restore that follows it without
    another break still belongs to the restart that has none yet."""
    found: list[_Steps] = []
    under_way, ran = False, False
    for event in steps:
        if event.action in BREAKS:
            if not under_way or found[-1].restored is not None:
                found.append(_Steps())
            found[-1].breaks.append(event)
            under_way = True
        elif event.action == Action.JOB_RESTORED:
            if not found or (found[-1].restored is not None and not under_way):
                found.append(_Steps(first=not ran))
            found[-1].restored, found[-1].running = event, None
            under_way = True
        else:
            under_way, ran = False, True
            for restart in found:  # also those that failed again before all tasks ran
                restart.running = restart.running or event
    return found


def _described(history: History, clock: EngineClock, job: Any, steps: _Steps) -> Restart:
    causes = [e.value.get("cause", "") for e in steps.breaks if e.action == Action.JOB_FAILING]
    restart = Restart(
        job=job,
        broke_s=(broke_ns := _broke_ns(history, clock, job, steps)) / 1e9,
        cause=causes[0] if causes else "",
        submitted=steps.first,
        struck_s=_struck_s(history, broke_ns),
        restored_s=clock.moment_ns(steps.restored) / 1e9 if steps.restored else None,
        checkpoint=steps.restored.value["checkpoint"] if steps.restored else None,
        running_s=steps.running.at_s if steps.running else None,
    )
    return _with_attempts(restart, history, broke_ns)


def _broke_ns(history: History, clock: EngineClock, job: Any, steps: _Steps) -> int:
    """When a restart began: a first start when the job was submitted, one whose break was not seen
    when it was restored."""
    if steps.breaks:
        return clock.moment_ns(steps.breaks[0])
    assert steps.restored is not None, "a restart has a break or a restore"
    restored_ns = clock.moment_ns(steps.restored)
    graphs = [g.at_ns for g in history.of(Action.JOB_SUBMITTED) if g.value.get("job") == job]
    return min(restored_ns, *graphs) if steps.first and graphs else restored_ns


def _struck_s(history: History, broke_ns: int) -> float | None:
    """When the last fault before a break was seen to bite; a break that was noticed sooner than
    the fault's effect was seen took no time to notice."""
    struck = [
        effect
        for effect in history.of(Action.FAULT_IN_EFFECT)
        if effect.value.get("called_ns", effect.value["seen_ns"]) <= broke_ns
    ]
    return min(struck[-1].value["seen_ns"], broke_ns) / 1e9 if struck else None


def _with_attempts(restart: Restart, history: History, broke_ns: int) -> Restart:
    """The restart with what its new attempts tell, from the break until all of them run."""
    attempts = [
        event
        for event in history.of(Action.TASK_CHANGED)
        if event.value.get("job") == restart.job
        and event.value.get("state") == "RUNNING"
        and event.value.get("initializing_ms") is not None
        and broke_ns <= event.at_ns
        and (restart.running_s is None or event.at_s <= restart.running_s)
    ]
    if not attempts:
        return restart
    slowest = max(attempts, key=lambda event: event.value["initializing_ms"])
    where = f"{slowest.value['vertex_name']}/{slowest.value['subtask']}"
    return replace(restart, initializing_ms=slowest.value["initializing_ms"], slowest=where)


def _between(begin_s: float | None, end_s: float | None) -> float | None:
    return None if begin_s is None or end_s is None else round(max(0.0, end_s - begin_s), 3)
