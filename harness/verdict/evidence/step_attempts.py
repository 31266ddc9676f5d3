"""The newest attempt of a step: a step that missed its window may be injected again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultEvent,
    FaultHealed,
    FaultInEffect,
    HealCalled,
)
from streamquake.reports.record.history import History

E = TypeVar("E", bound=FaultEvent)


class StepAttempt:
    """The events of one attempt of a step, the newest of each class."""

    def __init__(self, events: Iterable[FaultEvent] = ()) -> None:
        self._newest = {type(event): event for event in events}

    def get(self, kind: type[E]) -> E | None:
        """The event of a class, or None."""
        found = self._newest.get(kind)
        return found if isinstance(found, kind) else None

    def events(self) -> tuple[FaultEvent, ...]:
        """The newest event of each class, in the order of their classes' first events."""
        return tuple(self._newest.values())

    def __getitem__(self, kind: type[E]) -> E:
        """The event of a class. Raises KeyError where there is none."""
        if (found := self.get(kind)) is None:
            raise KeyError(kind.__name__)
        return found

    def __contains__(self, kind: type[FaultEvent]) -> bool:
        return kind in self._newest


def last_attempt(history: History, step: int) -> StepAttempt:
    """The events of a step since its last call."""
    found: list[FaultEvent] = []
    for event in history.of(FaultEvent):
        if event.value.get("step") == step:
            found = [event] if isinstance(event, FaultCalled) else [*found, event]
    return StepAttempt(found)


def first_heal_call(began: FaultInEffect, history: History) -> HealCalled | None:
    """The first call of the heal of a fault that took effect; a heal that failed is called again.
    None where the record has no call."""
    calls = history.of(HealCalled)
    return next(
        (each for each in calls if each.step == began.step and each.index > began.index), None
    )


def heal_called_ns(attempt: StepAttempt, history: History) -> int | None:
    """When the heal of a fault that took effect was called first, nanoseconds of the run's clock.

    Of a record without the call, the moment that the verification of the heal names. None where
    there is neither.
    """
    if (called := first_heal_call(attempt[FaultInEffect], history)) is not None:
        return called.at_ns
    healed = attempt.get(FaultHealed)
    return None if healed is None else healed.called_ns
