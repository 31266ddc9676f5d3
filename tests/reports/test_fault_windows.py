"""Fault windows: the times of calls, verified effects, early ends and heals."""

from __future__ import annotations

from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_windows import (
    FaultWindow,
    acted_windows,
    fault_windows,
    overlapping,
)
from streamquake.reports.record.history import History
from tests.reports.test_timeline import history

KILL = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}


def test_a_fault_window_has_the_times_of_observations_not_of_events() -> None:
    windows = fault_windows(
        history(
            (31.0, Action.FAULT_CALLED, {**KILL, "nodes": ["flink/taskmanager-2"]}),
            (
                31.2,
                Action.FAULT_IN_EFFECT,
                {**KILL, "called_ns": 31_001_000_000, "seen_ns": 31_015_000_000},
            ),
            (36.0, Action.HEAL_CALLED, KILL),
            (37.0, Action.FAULT_HEALED, {**KILL, "seen_ns": 36_500_000_000}),
        )
    )
    assert windows == (
        FaultWindow(
            **KILL,  # type: ignore[arg-type]
            nodes=("flink/taskmanager-2",),
            called_s=31.001,
            in_effect_s=31.015,
            heal_called_s=36.0,
            healed_s=36.5,
        ),
    )


def test_a_fault_without_effect_has_a_reason_and_no_effect_time() -> None:
    (window,) = fault_windows(
        history(
            (5, Action.FAULT_CALLED, {**KILL, "nodes": []}),
            (15, Action.FAULT_NOT_IN_EFFECT, {**KILL, "reason": "still running"}),
            (16, Action.FAULT_HEALED, {**KILL, "seen_ns": None}),
        )
    )
    assert (window.in_effect_s, window.healed_s, window.reason) == (None, 16, "still running")


def test_a_fault_has_one_window_for_each_call() -> None:
    called = {**KILL, "nodes": []}
    windows = fault_windows(
        history(
            (1, Action.FAULT_SKIPPED, {"step": 1, "fault": "pause", "reason": "no trigger"}),
            (2, Action.FAULT_CALLED, called),
            (3, Action.FAULT_HEALED, {**KILL, "seen_ns": 3_000_000_000}),
            (4, Action.FAULT_CALLED, called),
            (5, Action.FAULT_NOT_HEALED, {**KILL, "reason": "node is missing"}),
        )
    )
    assert [(w.called_s, w.healed_s, w.reason) for w in windows] == [
        (2, 3, ""),
        (4, None, "node is missing"),
    ]


def acting(
    step: int, begin_s: float, end_s: float
) -> list[tuple[float, Action, dict[str, object]]]:
    fault = {**KILL, "step": step, "nodes": []}
    return [
        (begin_s, Action.FAULT_CALLED, fault),
        (begin_s + 1, Action.FAULT_IN_EFFECT, fault),
        (end_s - 1, Action.HEAL_CALLED, fault),
        (end_s, Action.FAULT_HEALED, fault),
    ]


def test_a_fault_acts_until_its_heal_is_called_unless_it_ended_early() -> None:
    fault = {**KILL, "nodes": []}
    effect = [(1.0, Action.FAULT_CALLED, fault), (2.0, Action.FAULT_IN_EFFECT, fault)]
    still = (4.0, Action.FAULT_STILL_IN_EFFECT, {**fault, "seen_ns": 3_900_000_000})
    ended = (
        9.0,
        Action.FAULT_ENDED_EARLY,
        {**fault, "seen_ns": 8_800_000_000, "reason": "effect ended"},
    )
    healing = [(20.0, Action.HEAL_CALLED, fault), (21.0, Action.FAULT_HEALED, fault)]
    (complete,) = fault_windows(history(*effect, still, *healing))
    assert (complete.still_in_effect_s, complete.ended_early_s, complete.acted_until_s) == (
        3.9,
        None,
        20,
    )
    (ended_early,) = fault_windows(history(*effect, still, ended, *healing))
    assert (ended_early.ended_early_s, ended_early.acted_until_s, ended_early.reason) == (
        8.8,
        8.8,
        "effect ended",
    )
    (open_end,) = fault_windows(history(*effect))
    assert open_end.acted_until_s is None

    (never_seen_again,) = fault_windows(history(*effect, ended, *healing))
    windows = (complete, ended_early, never_seen_again, open_end)
    assert [window.proven_until_s for window in windows] == [20, 3.9, 2, None]


def test_windows_overlap_from_the_call_to_the_removal() -> None:
    events = [*acting(0, 0, 10), *acting(1, 9, 20), *acting(2, 20, 30)]
    one, two, three = fault_windows(history(*sorted(events, key=lambda each: each[0])))
    assert overlapping(one, (one, two, three)) == (two,)
    assert overlapping(two, (one, two, three)) == (one,)
    assert overlapping(three, (one, two, three)) == ()


def test_windows_that_acted_are_in_the_order_of_their_effects() -> None:
    never = (0.5, Action.FAULT_CALLED, {**KILL, "step": 7, "nodes": []})
    events = [never, *acting(1, 5, 9), *acting(0, 11, 15)]
    assert [window.step for window in acted_windows(history(*events))] == [1, 0]
    assert [window.step for window in fault_windows(history(*events))] == [7, 1, 0]


def test_a_missed_window_has_its_reason() -> None:
    fault = {**KILL, "nodes": []}
    (window,) = fault_windows(
        history(
            (1, Action.FAULT_CALLED, fault),
            (2, Action.FAULT_IN_EFFECT, fault),
            (3, Action.FAULT_MISSED_WINDOW, {**fault, "reason": "late"}),
        )
    )
    assert (window.missed_window, window.reason) == (True, "late")


def test_an_empty_history_has_no_windows() -> None:
    assert fault_windows(History()) == ()
    assert acted_windows(History()) == ()


def test_a_fault_that_ended_early_does_not_overlap_later_faults() -> None:
    fault = {**KILL, "step": 0, "nodes": []}
    ended = (4.0, Action.FAULT_ENDED_EARLY, {**fault, "seen_ns": 4_000_000_000})
    events = [*acting(0, 0, 30), ended, *acting(1, 4, 8), *acting(2, 3, 9)]
    one, two, three = sorted(
        fault_windows(history(*sorted(events, key=lambda each: each[0]))), key=lambda w: w.step
    )
    assert overlapping(one, (one, two, three)) == (three,)
    assert overlapping(two, (one, two, three)) == (three,)


def test_a_fault_that_was_never_healed_overlaps_all_later_faults() -> None:
    fault = {**KILL, "step": 0, "nodes": []}
    effect = [(1.0, Action.FAULT_CALLED, fault), (2.0, Action.FAULT_IN_EFFECT, fault)]
    open_end, later = fault_windows(history(*effect, *acting(1, 50, 60)))
    assert overlapping(open_end, (open_end, later)) == (later,)
    assert overlapping(later, (open_end, later)) == (open_end,)


def test_events_of_older_records_may_lack_their_reason_and_names() -> None:
    only: dict[str, object] = {"step": 3}
    (window,) = fault_windows(
        history((1, Action.FAULT_CALLED, only), (2, Action.FAULT_NOT_IN_EFFECT, only))
    )
    assert window == FaultWindow(step=3, fault="", target="", nodes=(), called_s=1)
    assert not window.acted


def test_an_effect_without_a_recorded_call_has_a_window() -> None:
    seen = {**KILL, "nodes": ["a"], "seen_ns": 1_900_000_000}
    (window,) = fault_windows(
        history(
            (1, Action.FAULT_HEALED, {**KILL, "step": 9}),
            (2, Action.FAULT_IN_EFFECT, seen),
            (3, Action.FAULT_HEALED, KILL),
        )
    )
    assert (window.called_s, window.in_effect_s, window.healed_s) == (2, 1.9, 3)
    assert (window.nodes, window.acted) == (("a",), True)


def test_without_a_recorded_heal_call_a_fault_acts_until_it_is_healed() -> None:
    fault = {**KILL, "nodes": []}
    (window,) = fault_windows(
        history(
            (1, Action.FAULT_CALLED, fault),
            (2, Action.FAULT_IN_EFFECT, fault),
            (5, Action.FAULT_HEALED, fault),
        )
    )
    assert (window.heal_called_s, window.acted_until_s) == (None, 5)


def test_a_fault_that_was_called_first_may_take_effect_last() -> None:
    slow, quick = ({**KILL, "step": step, "nodes": []} for step in (0, 1))
    windows = acted_windows(
        history(
            (0.0, Action.FAULT_CALLED, slow),
            (0.0, Action.FAULT_CALLED, quick),
            (0.5, Action.FAULT_IN_EFFECT, {**slow, "called_ns": 0, "seen_ns": 500_000_000}),
            (0.5, Action.FAULT_IN_EFFECT, {**quick, "called_ns": 0, "seen_ns": 0}),
        )
    )
    assert [(window.step, window.in_effect_s) for window in windows] == [(1, 0.0), (0, 0.5)]


def test_a_skip_without_a_step_does_not_hide_other_windows() -> None:
    found = history(
        (31.0, Action.FAULT_CALLED, KILL),
        (31.2, Action.FAULT_IN_EFFECT, {**KILL, "seen_ns": 31_015_000_000}),
        (32.0, Action.FAULT_SKIPPED, {"reason": "never triggered"}),
    )
    assert [window.in_effect_s for window in fault_windows(found)] == [31.015]
