"""Triggers: after seconds, and at the nth event since steady state."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from streamquake.faults.fault import When
from streamquake.faults.trigger import Trigger
from streamquake.reports.event import Action, Event, Kind


def event(action: Action, at_s: float) -> Event:
    return Event(index=0, at_ns=int(at_s * 1e9), process="p", kind=Kind.INFO, action=action)


def test_seconds_count_from_steady_state() -> None:
    trigger = Trigger(When(after_s=2.0), steady_ns=10**9)
    assert not trigger.is_due(int(2.9e9))
    assert trigger.is_due(3 * 10**9)


def test_the_nth_event_and_a_delay_set_the_moment() -> None:
    trigger = Trigger(When(event="checkpoint triggered", nth=2, delay_s=0.5), steady_ns=0)
    trigger.see(event(Action.CHECKPOINT_TRIGGERED, 1))
    trigger.see(event(Action.CHECKPOINT_COMPLETED, 2))
    assert trigger.due_ns is None
    assert "seen 1 of 2 times" in trigger.missing()
    trigger.see(event(Action.CHECKPOINT_TRIGGERED, 3))
    trigger.see(event(Action.CHECKPOINT_TRIGGERED, 4))
    assert trigger.due_ns == int(3.5e9)


def test_a_trigger_is_a_time_or_an_event_not_both_nor_neither() -> None:
    for wrong in ({}, {"after_s": 1.0, "event": "checkpoint triggered"}):
        with pytest.raises(ValidationError, match="either"):
            When(**wrong)  # type: ignore[arg-type]
