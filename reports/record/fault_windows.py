"""When each fault acted: one list of windows, which every check, figure and report reads.

A window is one injection of one step. It has five times: the injection was called, its effect was
verified on every target, the effect was verified again, the heal was called, and the removal was
verified. A time is None where the record does not have it. An effect that was observed to be absent
before the heal was called ended early: between its last verification and that observation. Records
of older versions have no repeated verifications; their windows end at the heal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultEndedEarly,
    FaultEvent,
    FaultHealed,
    FaultInEffect,
    FaultMissedWindow,
    FaultNotHealed,
    FaultNotInEffect,
    FaultNotVerified,
    FaultSkipped,
    FaultStillInEffect,
    HealCalled,
)
from streamquake.reports.record.history import History


@dataclass(frozen=True, kw_only=True)
class FaultWindow:
    """One injection; times in seconds since the run began, None where not recorded.

    `reason` is why there was no effect, no heal, or an early end.
    """

    step: int
    fault: str
    target: str
    nodes: tuple[str, ...]
    called_s: float
    in_effect_s: float | None = None
    still_in_effect_s: float | None = None
    """When the effect was verified last, after `in_effect_s` and before the heal."""
    ended_early_s: float | None = None
    """When the effect was observed to have ended, if that was before the heal was called."""
    heal_called_s: float | None = None
    healed_s: float | None = None
    missed_window: bool = False
    """Whether it took effect after the two events between which it was planned."""
    reason: str = ""

    @property
    def acted(self) -> bool:
        """Whether the effect was verified."""
        return self.in_effect_s is not None

    @property
    def acted_until_s(self) -> float | None:
        """The latest time at which the fault acted: its early end, else the call of the heal, else
        the removal; None where it acted until the history's end."""
        for moment in (self.ended_early_s, self.heal_called_s, self.healed_s):
            if moment is not None:
                return moment
        return None

    @property
    def proven_until_s(self) -> float | None:
        """The latest time at which the fault is known to have acted: where it ended early, its last
        verification, else `acted_until_s`."""
        if self.ended_early_s is None:
            return self.acted_until_s
        return self.in_effect_s if self.still_in_effect_s is None else self.still_in_effect_s

    def was_under_way(self, at_s: float) -> bool:
        """Whether it was called by a moment of the run's clock and not yet healed."""
        return self.called_s <= at_s and (self.healed_s is None or at_s < self.healed_s)


def fault_windows(history: History) -> tuple[FaultWindow, ...]:
    """Every injection in the order of the calls.

    A time is that of the observation (`seen_ns`) where the history has it, else that of the event.
    """
    windows: list[FaultWindow] = []
    newest: dict[int, int] = {}
    for event in history.of(FaultEvent):
        if isinstance(event, FaultSkipped | FaultNotVerified):
            continue  # neither changes a window, so damage to one must not hide the other windows
        step = event.step
        if isinstance(event, FaultCalled):
            newest[step] = len(windows)
            windows.append(_called(event))
        elif (
            isinstance(event, FaultInEffect) and step not in newest
        ):  # its call is not in the record
            newest[step] = len(windows)
            windows.append(_continued(_called(event), event))
        elif step in newest:
            windows[newest[step]] = _continued(windows[newest[step]], event)
    return tuple(windows)


def acted_windows(history: History) -> tuple[FaultWindow, ...]:
    """The windows of the faults whose effect was verified, in the order of their effects."""
    acted = [window for window in fault_windows(history) if window.in_effect_s is not None]
    return tuple(sorted(acted, key=lambda window: window.in_effect_s or 0.0))


def overlapping(window: FaultWindow, others: Sequence[FaultWindow]) -> tuple[FaultWindow, ...]:
    """The other windows that overlap this one."""
    return tuple(other for other in others if other is not window and _overlap(window, other))


def overlapping_groups(windows: Sequence[FaultWindow]) -> tuple[tuple[FaultWindow, ...], ...]:
    """Group windows that overlap directly or through other windows. Groups and windows keep the
    given order, which is that of the effects."""
    groups: list[tuple[FaultWindow, ...]] = []
    for window in windows:
        if groups and overlapping(window, groups[-1]):
            groups[-1] = (*groups[-1], window)
        else:
            groups.append((window,))
    return tuple(groups)


def _overlap(one: FaultWindow, other: FaultWindow) -> bool:
    return _begins_before_end(one, other) and _begins_before_end(other, one)


def _begins_before_end(one: FaultWindow, other: FaultWindow) -> bool:
    end_s = other.healed_s if other.ended_early_s is None else other.ended_early_s
    return end_s is None or one.called_s < end_s


def _called(event: FaultEvent) -> FaultWindow:
    return FaultWindow(
        step=event.step,
        fault=event.fault,
        target=event.target,
        nodes=tuple(event.nodes or ()),
        called_s=event.at_s,
    )


def _continued(window: FaultWindow, event: FaultEvent) -> FaultWindow:
    match event:
        case FaultInEffect():
            called_s = window.called_s if event.called_ns is None else event.called_ns / 1e9
            return replace(window, called_s=called_s, in_effect_s=event.moment_ns / 1e9)
        case FaultStillInEffect():
            return replace(window, still_in_effect_s=event.moment_ns / 1e9)
        case HealCalled():
            return replace(window, heal_called_s=event.at_s)
        case FaultHealed():
            return replace(window, healed_s=event.moment_ns / 1e9)
        case FaultMissedWindow():
            return replace(window, missed_window=True, reason=event.reason)
        case FaultEndedEarly():
            return replace(window, ended_early_s=event.moment_ns / 1e9, reason=event.reason)
        case FaultNotInEffect() | FaultNotHealed():
            return replace(window, reason=event.reason)
        case _:
            return window
