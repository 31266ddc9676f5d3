"""The waits of a run that were not met: five kinds, each with its own event.

Only the first means that the system did not recover. The other four mean that the run did not reach
its end within a limit, which proves nothing about recovery. Records of older versions have one
event for all five; its reason begins with the name of the wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import FailedWaitEvent, SystemNotRecovered


class Wait(StrEnum):
    """What a run waits for after its faults; the value begins the reason of a wait not met."""

    RECOVERY = "recovery"
    WORKLOAD = "workload finished"
    INPUT = "input read to its end"
    OUTPUTS = "outputs committed"
    QUIET = "outputs quiet"


NOT_MET = {
    Wait.RECOVERY: Action.NOT_RECOVERED,
    Wait.WORKLOAD: Action.WORKLOAD_NOT_FINISHED,
    Wait.INPUT: Action.INPUT_NOT_READ,
    Wait.OUTPUTS: Action.OUTPUTS_NOT_COMMITTED,
    Wait.QUIET: Action.OUTPUTS_NOT_QUIET,
}
"""The event that records that a wait was not met."""


@dataclass(frozen=True, kw_only=True)
class FailedWait:
    """A wait that was not met within its limit; the reason has the last observation."""

    wait: Wait
    reason: str
    at_s: float


def failed_waits(history: History) -> tuple[FailedWait, ...]:
    """The waits that were not met, in order."""
    return tuple(
        FailedWait(wait=_wait(event), reason=event.reason or "", at_s=event.at_s)
        for event in history.of(FailedWaitEvent)
    )


def _wait(event: FailedWaitEvent) -> Wait:
    if isinstance(event, SystemNotRecovered):
        reason = event.reason or ""
        return next((wait for wait in Wait if reason.startswith(f"{wait}:")), Wait.RECOVERY)
    return next(wait for wait, action in NOT_MET.items() if action == event.action)
