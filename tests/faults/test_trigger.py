"""Triggers: seconds, the nth event, between two events, thresholds, and another step's effect."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.faults.schedule.trigger import Trigger, referenced_step, trigger_of
from streamquake.reports.record.event import Action, Event, Kind

CLOCK = FakeClock()
EPOCH_MS = CLOCK.epoch_ms()


def event(action: Action, at_s: float, **value: Any) -> Event:
    return Event(
        index=0, at_ns=int(at_s * 1e9), process="p", kind=Kind.INFO, action=action, value=value
    )


def trigger(steady_ns: int = 0, steps: tuple[Step, ...] = (), **when: Any) -> Trigger:
    return trigger_of(TriggerSpec(**when), CLOCK, steady_ns=steady_ns, steps=steps)


def test_seconds_count_from_steady_state() -> None:
    waiting = trigger(10**9, after_s=2.0)
    assert not waiting.is_due(int(2.9e9))
    assert waiting.is_due(3 * 10**9)
    assert trigger(10**9, after_s=0.0).is_due(10**9)


def test_the_nth_event_and_a_delay_set_the_moment() -> None:
    waiting = trigger(event="checkpoint triggered", nth=2, delay_s=0.5)
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 1))
    waiting.observe(event(Action.CHECKPOINT_COMPLETED, 2))
    assert waiting.due_ns is None
    assert "observed 1 of 2 times" in waiting.unfired_reason()
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 3))
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 4))
    assert waiting.due_ns == int(3.5e9)


def test_the_moment_of_an_event_is_the_systems_own_stamp() -> None:
    waiting = trigger(event="checkpoint triggered")
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 1.08, trigger_ms=EPOCH_MS + 1000))
    assert waiting.due_ns == 10**9


def sent(last: int, at_s: float, status: str = "acknowledged") -> Event:
    return event(Action.SENT, at_s, first=0, last=last, count=last + 1, status=status)


def test_a_record_sets_the_moment_when_it_is_acknowledged() -> None:
    waiting = trigger(at_record=500, delay_s=0.5)
    assert (
        waiting.unfired_reason()
        == "at record 500 + 0.5 s: no record was acknowledged since steady state"
    )
    waiting.observe(sent(499, 1))
    waiting.observe(sent(900, 2, "unknown"))
    assert waiting.due_ns is None
    assert waiting.unfired_reason().endswith("the last acknowledged record was 499")
    waiting.observe(sent(500, 3))
    waiting.observe(sent(900, 4))
    assert waiting.due_ns == int(3.5e9)
    assert waiting.event == sent(500, 3)


CHECKPOINT = ("checkpoint triggered", "checkpoint acknowledged")


def opened(**more: Any) -> Trigger:
    """A window that checkpoint 7 has opened, and in which the trigger has fired."""
    waiting = trigger(between=CHECKPOINT, **more)
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 1, checkpoint=7))
    assert waiting.is_due(10**9)
    waiting.fire()
    return waiting


def test_an_effect_before_the_window_closes_is_in_time() -> None:
    waiting = opened()
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.1, checkpoint=6))
    assert waiting.missed_reason(int(1.2e9), int(1.2e9)) == ""
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.3, checkpoint=7))
    assert waiting.missed_reason(int(1.2e9), int(1.2e9)) == ""


def test_an_effect_after_the_window_closed_is_too_late() -> None:
    waiting = opened()
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.1, checkpoint=7))
    assert "happened 100.0 ms before the effect of the fault was verified" in waiting.missed_reason(
        int(1.2e9), int(1.2e9)
    )


def test_a_window_is_judged_by_the_systems_stamps_not_by_observation_times() -> None:
    waiting = opened()
    waiting.observe(
        event(Action.CHECKPOINT_ACKNOWLEDGED, 1.5, checkpoint=7, ack_ms=EPOCH_MS + 1150)
    )
    assert waiting.missed_reason(int(1.1e9), int(1.1e9)) == ""
    waiting.observe(event(Action.CHECKPOINT_FAILED, 9, checkpoint=7, first_ack_ms=EPOCH_MS + 1050))
    assert '"checkpoint acknowledged" happened 50.0 ms' in waiting.missed_reason(
        int(1.1e9), int(1.1e9)
    )


@pytest.mark.parametrize(
    ("first", "duration_ms", "missed"),
    [
        (Action.CHECKPOINT_TRIGGERED, 150, True),  # perhaps it completed with the acknowledgement
        (Action.CHECKPOINT_TRIGGERED, 250, False),
        (Action.CHECKPOINT_TRIGGERED, None, False),
        (Action.CHECKPOINT_ALL_ACKNOWLEDGED, 150, False),  # the window opens with it
    ],
)
def test_a_completion_counts_from_the_last_acknowledgement(
    first: Action, duration_ms: int | None, missed: bool
) -> None:
    """It is observed at 1.5 s, and the fault takes effect at 1.2 s."""
    waiting = trigger(between=(str(first), "checkpoint completed"))
    waiting.observe(event(first, 1, checkpoint=7))
    waiting.fire()
    stamps = {"trigger_ms": EPOCH_MS + 1000, "duration_ms": duration_ms}
    waiting.observe(event(Action.CHECKPOINT_COMPLETED, 1.5, checkpoint=7, **stamps))
    assert bool(waiting.missed_reason(int(1.2e9), int(1.2e9))) == missed


def test_a_checkpoint_that_failed_before_the_injection_closes_the_window() -> None:
    waiting = opened()
    waiting.observe(event(Action.CHECKPOINT_FAILED, 1.1, checkpoint=7))
    assert '"checkpoint failed" happened' in waiting.missed_reason(int(1.2e9), int(1.2e9))


def test_a_checkpoint_that_failed_because_of_the_injection_is_in_time() -> None:
    """An engine may notice a kill before the harness observes it."""
    waiting = opened()
    waiting.observe(event(Action.CHECKPOINT_FAILED, 1.15, checkpoint=7))
    assert waiting.missed_reason(int(1.1e9), int(1.2e9)) == ""
    assert waiting.missed_reason(int(1.16e9), int(1.2e9)) != ""


def test_a_window_that_closes_before_the_injection_is_skipped() -> None:
    waiting = trigger(between=CHECKPOINT, delay_s=0.2)
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 1, checkpoint=1))
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.1, checkpoint=1))
    assert waiting.due_ns is None
    assert "shorter than the harness can observe" in waiting.unfired_reason()
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 3, checkpoint=2))
    assert waiting.due_ns == int(3.2e9)


def test_a_window_can_be_awaited_again() -> None:
    waiting = opened(tries=2)
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.1, checkpoint=7))
    waiting.wait_again()
    assert waiting.missed_reason(int(9e9), int(9e9)) == ""
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 5, checkpoint=9))
    assert waiting.due_ns == 5 * 10**9


def test_a_restart_is_a_window_without_a_checkpoint() -> None:
    waiting = trigger(between=("job restarting", "job restored"))
    waiting.observe(event(Action.JOB_RESTARTING, 1, restarting_ms=EPOCH_MS + 900))
    assert waiting.due_ns == 9 * 10**8
    waiting.fire()
    waiting.observe(event(Action.JOB_RESTORED, 2, checkpoint=4, restored_at_ms=EPOCH_MS + 1500))
    assert waiting.missed_reason(int(1.6e9), int(1.6e9)) != ""


def test_a_metric_must_stay_beyond_its_threshold() -> None:
    waiting = trigger(metric="lag", above=100, for_s=2)
    for at_s, value in ((1, 500.0), (2, 50.0), (3, 200.0), (4, 300.0)):
        waiting.add_sample("lag", "input", value, int(at_s * 1e9))
        waiting.add_sample("sent_per_s", "load", 1e9, int(at_s * 1e9))
    assert waiting.due_ns is None
    waiting.add_sample("lag", "input", 101.0, 5 * 10**9)
    assert waiting.due_ns == 5 * 10**9


def test_the_largest_value_of_several_places_counts() -> None:
    low = trigger(metric="output_per_s", below=10)
    low.add_sample("output_per_s", "a", 5.0, 10**9)
    assert low.is_due(10**9)
    busy = trigger(metric="output_per_s", below=10)
    busy.add_sample("output_per_s", "b", 50.0, 10**9)
    busy.add_sample("output_per_s", "a", 5.0, 10**9)
    assert not busy.is_due(2 * 10**9)
    assert "the last value was 50" in busy.unfired_reason()


def test_back_pressure_is_a_ratio() -> None:
    waiting = trigger(metric="backpressure", above=0.5)
    waiting.add_sample("back_pressured_ms_per_s_max", "map", 400.0, 10**9)
    assert not waiting.is_due(10**9)
    waiting.add_sample("back_pressured_ms_per_s_max", "map", 600.0, 10**9)
    assert waiting.is_due(10**9)


KILL = Step(fault="kill", target="flink/taskmanager-1", when=TriggerSpec(after_s=1))


def test_another_steps_effect_sets_the_moment() -> None:
    waiting = trigger(steps=(KILL,), effect_of="kill", delay_s=1)
    waiting.observe(event(Action.FAULT_IN_EFFECT, 4.5, step=0, seen_ns=int(4.4e9)))
    assert waiting.due_ns == int(5.4e9)


def test_a_step_after_one_that_was_skipped_cannot_be_triggered() -> None:
    waiting = trigger(steps=(KILL,), effect_of=1)
    waiting.observe(event(Action.FAULT_SKIPPED, 4, step=0, reason="no such node"))
    assert "no such node" in waiting.impossible_reason


@pytest.mark.parametrize(
    ("reference", "text"),
    [(2, "no step 2 before"), ("pause", 'no step before this one is a "pause"; there are: kill')],
)
def test_a_reference_to_an_unknown_step_is_rejected(reference: int | str, text: str) -> None:
    with pytest.raises(LookupError, match=text):
        referenced_step(TriggerSpec(effect_of=reference), (KILL,))


def test_an_ambiguous_reference_to_a_step_is_rejected() -> None:
    with pytest.raises(LookupError, match="steps 1 and 2; give the number"):
        referenced_step(TriggerSpec(effect_of="kill"), (KILL, KILL))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({}, "a trigger is either .* got none"),
        ({"after_s": 1.0, "event": "checkpoint triggered"}, "got `after_s` and `event`"),
        ({"at_record": 1, "nth": 2}, "`nth` goes with `event` or `between`, got `at_record`"),
        ({"at_record": 1, "for_s": 2}, "`for_s` goes with `metric`, got `at_record`"),
        ({"after_s": 1.0, "nth": 2}, "`nth` goes with `event` or `between`, got `after_s`"),
        ({"event": "x", "tries": 2}, "`tries` goes with `between`"),
        ({"metric": "lag"}, "needs one threshold"),
        ({"metric": "lag", "above": 1.0, "below": 2.0}, "needs one threshold"),
        ({"between": ("x", "x")}, "two different events"),
    ],
)
def test_an_invalid_trigger_is_rejected(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        TriggerSpec(**wrong)


def test_a_trigger_has_a_readable_text() -> None:
    for when, message in (
        (
            TriggerSpec(between=CHECKPOINT, nth=2, tries=3),
            "between checkpoint triggered no. 2 and checkpoint acknowledged, 3 tries",
        ),
        (TriggerSpec(metric="lag", above=10, for_s=2), "when lag is above 10 for 2 s"),
        (TriggerSpec(effect_of=1, delay_s=1), "when #1 is in effect + 1 s"),
    ):
        assert str(when) == message


def test_a_trigger_that_did_not_fire_has_a_reason() -> None:
    """The complete message about a trigger that never fired."""
    assert (
        trigger(after_s=2.0).unfired_reason() == "the moment 2 s after steady state was not reached"
    )
    nth = trigger(event="checkpoint triggered", nth=2)
    assert (
        nth.unfired_reason()
        == '"checkpoint triggered" was observed 0 of 2 times since steady state'
    )
    nothing = trigger(metric="lag", above=10)
    assert nothing.unfired_reason() == 'no sample of "lag" was observed since steady state'
    nothing.add_sample("lag", "input", 5.5, 10**9)
    assert (
        nothing.unfired_reason()
        == "when lag is above 10: this never was the case; the last value was 5.5"
    )
    other = trigger(steps=(KILL,), effect_of=1)
    assert other.unfired_reason() == "when #1 is in effect: it was not in effect yet"


def test_a_window_that_did_not_open_reports_its_progress() -> None:
    waiting = trigger(between=CHECKPOINT, nth=2, delay_s=1)
    message = '"checkpoint triggered" was observed {} times since steady state'
    assert waiting.unfired_reason() == f"{message.format(0)}, number 2 was awaited"
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 1, checkpoint=1))
    assert (waiting.due_ns, waiting.event) == (None, None)
    assert waiting.unfired_reason() == f"{message.format(1)}, number 2 was awaited"
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.1, checkpoint=1))
    second = event(Action.CHECKPOINT_TRIGGERED, 2, checkpoint=2)
    waiting.observe(second)
    assert (waiting.due_ns, waiting.event) == (3 * 10**9, second)
    assert waiting.unfired_reason() == message.format(2)
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 2.1, checkpoint=2))
    assert (waiting.due_ns, waiting.event) == (None, None)
    short = "the step is shorter than the harness can observe"
    assert waiting.unfired_reason() == (
        f'{message.format(2)}; 1 times "checkpoint acknowledged" had followed before the fault '
        f"could be injected: {short}"
    )
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 4, checkpoint=3))
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 4.1, checkpoint=3))
    assert '; 2 times "checkpoint acknowledged"' in waiting.unfired_reason()


def test_a_missed_window_reports_the_delay() -> None:
    waiting = opened()
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.1, checkpoint=7))
    assert waiting.missed_reason(int(1.05e9), int(1.1125e9)) == (
        'the window between "checkpoint triggered" and "checkpoint acknowledged" was missed: '
        '"checkpoint acknowledged" happened 12.5 ms before the effect of the fault was verified'
    )
    assert "happened 100000.0 ms before" in waiting.missed_reason(int(1.05e9), int(101.1e9))
    assert waiting.missed_reason(int(1.05e9), int(1.1e9)) != "", "at the same moment is too late"
    assert waiting.missed_reason(int(1.05e9), int(1.1e9) - 1) == ""


def test_the_first_event_that_closes_a_window_counts() -> None:
    waiting = opened()
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.3, checkpoint=7))
    waiting.observe(event(Action.CHECKPOINT_FAILED, 1.1, checkpoint=7))
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 1.4, checkpoint=7))
    assert '"checkpoint failed" happened 100.0 ms' in waiting.missed_reason(int(1.15e9), int(1.2e9))


@pytest.mark.parametrize(
    ("action", "of", "by", "closes"),
    [
        (Action.CHECKPOINT_ACKNOWLEDGED, 7, 7, True),
        (Action.CHECKPOINT_ACKNOWLEDGED, 7, 8, False),
        (Action.CHECKPOINT_ACKNOWLEDGED, None, 8, True),
        (Action.CHECKPOINT_ACKNOWLEDGED, 7, None, True),
        (Action.CHECKPOINT_FAILED, 7, 7, True),
        (Action.CHECKPOINT_FAILED, 7, 8, False),
        (Action.CHECKPOINT_FAILED, None, None, False),
        (Action.CHECKPOINT_COMPLETED, 7, 7, False),
        (Action.CHECKPOINT_TRIGGERED, 7, 7, False),
    ],
)
def test_only_events_of_the_same_checkpoint_close_a_window(
    action: Action, of: int | None, by: int | None, closes: bool
) -> None:
    waiting = trigger(between=CHECKPOINT)
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 1, checkpoint=of))
    waiting.fire()
    waiting.observe(event(action, 1.1, checkpoint=by))
    assert bool(waiting.missed_reason(2 * 10**9, 2 * 10**9)) == closes


def test_a_retried_window_waits_for_a_new_first_event() -> None:
    waiting = opened(tries=2)
    waiting.wait_again()
    assert (waiting.due_ns, waiting.event) == (None, None)
    waiting.observe(event(Action.CHECKPOINT_TRIGGERED, 3, checkpoint=8))
    waiting.observe(event(Action.CHECKPOINT_ACKNOWLEDGED, 3.1, checkpoint=8))
    assert waiting.due_ns is None, "the trigger did not fire, so the window was missed"


def test_a_place_without_recent_samples_no_longer_counts() -> None:
    waiting = trigger(metric="output_per_s", below=10)
    waiting.add_sample("output_per_s", "gone", 50.0, 10**9)
    waiting.add_sample("output_per_s", "a", 5.0, 11 * 10**9 - 1)
    assert waiting.due_ns is None
    waiting.add_sample("output_per_s", "a", 5.0, 11 * 10**9)
    assert waiting.due_ns == 11 * 10**9


@pytest.mark.parametrize(
    ("limit", "value", "beyond"),
    [
        ({"above": 10}, 10.0, False),
        ({"above": 10}, 10.5, True),
        ({"above": 0}, 0.5, True),
        ({"below": 10}, 10.0, False),
        ({"below": 10}, 9.5, True),
        ({"below": 0}, 0.5, False),
        ({"below": 0}, -0.5, True),
    ],
)
def test_a_value_equal_to_the_threshold_does_not_trigger(
    limit: dict[str, Any], value: float, beyond: bool
) -> None:
    waiting = trigger(metric="lag", **limit)
    waiting.add_sample("lag", "input", value, 10**9)
    assert waiting.is_due(10**9) == beyond


def test_the_duration_counts_from_the_first_sample_beyond_the_threshold() -> None:
    waiting = trigger(metric="lag", above=100, for_s=2, delay_s=1)
    waiting.add_sample("lag", "input", 200.0, 10**9)
    waiting.add_sample("lag", "input", 200.0, 3 * 10**9 - 1)
    assert waiting.due_ns is None
    waiting.add_sample("lag", "input", 200.0, 3 * 10**9)
    assert waiting.due_ns == 4 * 10**9
    waiting.add_sample("lag", "input", 900.0, 9 * 10**9)
    assert waiting.due_ns == 4 * 10**9, "the moment is set only once"


def test_only_the_referenced_step_counts() -> None:
    waiting = trigger(steps=(KILL, KILL), effect_of=2)
    waiting.observe(event(Action.FAULT_IN_EFFECT, 2, step=0, seen_ns=2 * 10**9))
    waiting.observe(event(Action.FAULT_SKIPPED, 2, step=0, reason="elsewhere"))
    waiting.observe(event(Action.FAULT_CALLED, 3, step=1))
    assert (waiting.due_ns, waiting.impossible_reason) == (None, "")
    effect = event(Action.FAULT_IN_EFFECT, 4, step=1, seen_ns=4 * 10**9)
    waiting.observe(effect)
    waiting.observe(event(Action.FAULT_IN_EFFECT, 6, step=1, seen_ns=6 * 10**9))
    assert (waiting.due_ns, waiting.event) == (4 * 10**9, effect)


@pytest.mark.parametrize("action", [Action.FAULT_SKIPPED, Action.FAULT_NOT_IN_EFFECT])
def test_the_reason_of_a_step_without_effect_is_passed_to_waiting_steps(
    action: Action,
) -> None:
    waiting = trigger(steps=(KILL,), effect_of=1)
    waiting.observe(event(action, 4, step=0, reason="no such node"))
    assert (
        waiting.impossible_reason == "when #1 is in effect: it never was in effect (no such node)"
    )


def test_a_step_may_refer_to_any_earlier_step() -> None:
    steps = (
        KILL,
        KILL,
        Step(fault="pause", target="flink/taskmanager-1", when=TriggerSpec(after_s=1)),
    )
    assert [referenced_step(TriggerSpec(effect_of=number), steps) for number in (1, 2, 3)] == [
        0,
        1,
        2,
    ]
    assert referenced_step(TriggerSpec(effect_of="pause"), steps) == 2
    with pytest.raises(LookupError) as unknown:
        referenced_step(TriggerSpec(effect_of="cut"), steps)
    assert str(unknown.value) == 'no step before this one is a "cut"; there are: kill, pause'
    with pytest.raises(LookupError) as first:
        referenced_step(TriggerSpec(effect_of="cut"), ())
    assert str(first.value) == 'no step before this one is a "cut"; there are: none'
    with pytest.raises(LookupError) as many:
        referenced_step(TriggerSpec(effect_of="kill"), steps)
    assert str(many.value) == '"kill" is the fault of steps 1 and 2; give the number'
    with pytest.raises(LookupError, match=r"^there is no step 4 before this one$"):
        referenced_step(TriggerSpec(effect_of=4), steps)
