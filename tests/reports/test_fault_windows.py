"""One list of fault windows: calls, verified effects, early ends and heals, to the moment."""

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


def test_a_fault_window_has_the_moments_that_were_seen_not_those_of_the_events() -> None:
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


def test_a_fault_that_never_bit_has_no_moment_of_effect_but_a_reason() -> None:
    (window,) = fault_windows(
        history(
            (5, Action.FAULT_CALLED, {**KILL, "nodes": []}),
            (15, Action.FAULT_NOT_IN_EFFECT, {**KILL, "reason": "still running"}),
            (16, Action.FAULT_HEALED, {**KILL, "seen_ns": None}),
        )
    )
    assert (window.in_effect_s, window.healed_s, window.reason) == (None, 16, "still running")


def test_a_fault_never_called_has_no_window_and_one_called_twice_has_two() -> None:
    called = {**KILL, "nodes": []}
    windows = fault_windows(
        history(
            (1, Action.FAULT_SKIPPED, {"step": 1, "fault": "pause", "reason": "no trigger"}),
            (2, Action.FAULT_CALLED, called),
            (3, Action.FAULT_HEALED, {**KILL, "seen_ns": 3_000_000_000}),
            (4, Action.FAULT_CALLED, called),
            (5, Action.FAULT_NOT_HEALED, {**KILL, "reason": "gone astray"}),
        )
    )
    assert [(w.called_s, w.healed_s, w.reason) for w in windows] == [
        (2, 3, ""),
        (4, None, "gone astray"),
    ]


def acting(
    step: int, begin_s: float, end_s: float
) -> list[tuple[float, Action, dict[str, object]]]:
    about = {**KILL, "step": step, "nodes": []}
    return [
        (begin_s, Action.FAULT_CALLED, about),
        (begin_s + 1, Action.FAULT_IN_EFFECT, about),
        (end_s - 1, Action.HEAL_CALLED, about),
        (end_s, Action.FAULT_HEALED, about),
    ]


def test_a_fault_acts_until_its_heal_is_called_unless_it_ended_early() -> None:
    about = {**KILL, "nodes": []}
    started = [(1.0, Action.FAULT_CALLED, about), (2.0, Action.FAULT_IN_EFFECT, about)]
    still = (4.0, Action.FAULT_STILL_IN_EFFECT, {**about, "seen_ns": 3_900_000_000})
    ended = (9.0, Action.FAULT_ENDED_EARLY, {**about, "seen_ns": 8_800_000_000, "reason": "gone"})
    healing = [(20.0, Action.HEAL_CALLED, about), (21.0, Action.FAULT_HEALED, about)]
    (whole,) = fault_windows(history(*started, still, *healing))
    assert (whole.still_in_effect_s, whole.ended_early_s, whole.acted_until_s) == (3.9, None, 20)
    (cut,) = fault_windows(history(*started, still, ended, *healing))
    assert (cut.ended_early_s, cut.acted_until_s, cut.reason) == (8.8, 8.8, "gone")
    (open_end,) = fault_windows(history(*started))
    assert open_end.acted_until_s is None


def test_windows_overlap_from_the_call_to_the_removal() -> None:
    events = [*acting(0, 0, 10), *acting(1, 9, 20), *acting(2, 20, 30)]
    one, two, three = fault_windows(history(*sorted(events, key=lambda each: each[0])))
    assert overlapping(one, (one, two, three)) == (two,)
    assert overlapping(two, (one, two, three)) == (one,)
    assert overlapping(three, (one, two, three)) == ()


def test_windows_that_acted_stand_in_the_order_of_their_effects() -> None:
    never = (0.5, Action.FAULT_CALLED, {**KILL, "step": 7, "nodes": []})
    events = [never, *acting(1, 5, 9), *acting(0, 11, 15)]
    assert [window.step for window in acted_windows(history(*events))] == [1, 0]
    assert [window.step for window in fault_windows(history(*events))] == [7, 1, 0]


def test_a_missed_window_is_told_with_its_reason() -> None:
    about = {**KILL, "nodes": []}
    (window,) = fault_windows(
        history(
            (1, Action.FAULT_CALLED, about),
            (2, Action.FAULT_IN_EFFECT, about),
            (3, Action.FAULT_MISSED_WINDOW, {**about, "reason": "late"}),
        )
    )
    assert (window.missed_window, window.reason) == (True, "late")


def test_an_empty_history_has_no_windows() -> None:
    assert fault_windows(History()) == ()
    assert acted_windows(History()) == ()


def test_a_fault_that_ended_early_overlaps_nothing_that_came_later() -> None:
    about = {**KILL, "step": 0, "nodes": []}
    ended = (4.0, Action.FAULT_ENDED_EARLY, {**about, "seen_ns": 4_000_000_000})
    events = [*acting(0, 0, 30), ended, *acting(1, 4, 8), *acting(2, 3, 9)]
    one, two, three = sorted(
        fault_windows(history(*sorted(events, key=lambda each: each[0]))), key=lambda w: w.step
    )
    assert overlapping(one, (one, two, three)) == (three,)
    assert overlapping(two, (one, two, three)) == (three,)


def test_a_fault_that_was_never_healed_overlaps_all_that_came_later() -> None:
    about = {**KILL, "step": 0, "nodes": []}
    started = [(1.0, Action.FAULT_CALLED, about), (2.0, Action.FAULT_IN_EFFECT, about)]
    open_end, later = fault_windows(history(*started, *acting(1, 50, 60)))
    assert overlapping(open_end, (open_end, later)) == (later,)
    assert overlapping(later, (open_end, later)) == (open_end,)


def test_events_of_older_records_may_lack_their_reason_and_their_names() -> None:
    only: dict[str, object] = {"step": 3}
    (window,) = fault_windows(
        history((1, Action.FAULT_CALLED, only), (2, Action.FAULT_NOT_IN_EFFECT, only))
    )
    assert window == FaultWindow(step=3, fault="", target="", nodes=(), called_s=1)
    assert not window.acted


def test_an_effect_whose_call_was_not_kept_has_a_window() -> None:
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


def test_without_the_call_of_its_heal_a_fault_acts_until_it_is_gone() -> None:
    about = {**KILL, "nodes": []}
    (window,) = fault_windows(
        history(
            (1, Action.FAULT_CALLED, about),
            (2, Action.FAULT_IN_EFFECT, about),
            (5, Action.FAULT_HEALED, about),
        )
    )
    assert (window.heal_called_s, window.acted_until_s) == (None, 5)


def test_a_fault_that_was_called_first_may_be_the_last_in_effect() -> None:
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


def test_a_skip_without_its_step_hides_no_window() -> None:
    found = history(
        (31.0, Action.FAULT_CALLED, KILL),
        (31.2, Action.FAULT_IN_EFFECT, {**KILL, "seen_ns": 31_015_000_000}),
        (32.0, Action.FAULT_SKIPPED, {"reason": "never triggered"}),
    )
    assert [window.in_effect_s for window in fault_windows(found)] == [31.015]
