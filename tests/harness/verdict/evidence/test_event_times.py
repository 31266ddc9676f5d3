"""Evidence by its moments: events exactly at a limit, and events missing in the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.verdict.evidence.disturbed_traffic import targets_of_probe_alone
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.heal_evidence import not_healed, unhealed_earlier_attempt
from streamquake.harness.verdict.evidence.load_plan import load_problems
from streamquake.harness.verdict.evidence.missed_windows import outside_window
from streamquake.harness.verdict.evidence.recovery import RecoveryPhases, recoveries_of
from streamquake.harness.verdict.evidence.sent_times import (
    SentRange,
    recorded_between,
    sent_ranges_of,
)
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, last_attempt
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_event, trigger_problem
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import DISTURBED, MICRO_BATCH, PROBE_ALONE, SYSTEM, Action
from streamquake.reports.record.fault_events import FaultCalled
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from tests.harness.histories import Story

NOTES = [SentRange(0, 9, 1, 1), SentRange(10, 19, 1, 2), SentRange(20, 29, 2, 3)]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(1, 1, [0, 1]), (1, 2, [0, 1, 2]), (2, 2, [1, 2]), (2, 3, [1, 2]), (3, 9, [2]), (4, 9, [])],
)
def test_the_sends_between_two_moments_include_the_next_range(
    start: int, end: int, found: list[int]
) -> None:
    assert recorded_between(NOTES, start, end) == [NOTES[each] for each in found]


def test_a_range_of_sends_begins_at_the_range_before() -> None:
    story = Story()
    for at_s, first, status in (
        (2, 10, "acknowledged"),
        (1, 0, "acknowledged"),
        (3, 20, "unknown"),
    ):
        story.at(at_s, Action.SENT, first=first, last=first + 9, count=10, status=status)
    assert sent_ranges_of(story.history()) == [
        SentRange(0, 9, 10**9, 10**9),
        SentRange(10, 19, 10**9, 2 * 10**9),
    ]
    assert sent_ranges_of(Story().history()) == []


BETWEEN = TriggerSpec(between=("checkpoint triggered", "checkpoint all acknowledged"))


@pytest.mark.parametrize(
    ("action", "value", "closed"),
    [
        (Action.CHECKPOINT_COMPLETED, {"checkpoint": 4}, False),
        (Action.CHECKPOINT_COMPLETED, {"checkpoint": 4, "last_ack_ms": 9}, True),
        (Action.CHECKPOINT_COMPLETED, {"checkpoint": 4, "first_ack_ms": 9}, False),
        (Action.CHECKPOINT_COMPLETED, {"checkpoint": 3, "last_ack_ms": 9}, False),
        (Action.CHECKPOINT_COMPLETED, {"checkpoint": 5}, True),
        (Action.CHECKPOINT_COMPLETED, {}, False),
        (Action.CHECKPOINT_FAILED, {}, False),
        (Action.CHECKPOINT_FAILED, {"checkpoint": 4}, True),
        (Action.CHECKPOINT_ALL_ACKNOWLEDGED, {}, True),
        (Action.CHECKPOINT_ALL_ACKNOWLEDGED, {"checkpoint": 5}, False),
        (Action.CHECKPOINT_ALL_ACKNOWLEDGED, {"checkpoint": 4}, True),
        (Action.JOB_FAILING, {}, True),
        (Action.JOB_RESTORED, {"checkpoint": 1}, True),
        (Action.OUTPUT_SEEN, {}, False),
    ],
)
def test_some_events_close_a_window(action: Action, value: dict[str, Any], closed: bool) -> None:
    story = Story().at(0.5, action, **{**value, "job": "former"})
    story.at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=4)
    story.at(2, Action.FAULT_CALLED, step=0, trigger_index=1).effect(2)
    unclosed = outside_window(BETWEEN, last_attempt(story.history(), 0), story.history())
    assert unclosed == (
        'the window was never closed: no "checkpoint all acknowledged" was seen after '
        '"checkpoint triggered"'
    ), "an earlier event closes no window"
    history = story.at(3, action, **value).history()
    assert (outside_window(BETWEEN, last_attempt(history, 0), history) == "") == closed


@pytest.mark.parametrize(("of", "by", "closed"), [(0, 0, False), (0, 1, True), (1, 0, False)])
def test_micro_batches_count_from_zero(of: int, by: int, closed: bool) -> None:
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=of)
    story.at(2, Action.FAULT_CALLED, step=0, trigger_index=0)
    history = story.at(3, Action.CHECKPOINT_COMPLETED, checkpoint=by).history()
    assert (outside_window(BETWEEN, last_attempt(history, 0), history) == "") == closed


def test_a_window_of_no_checkpoint_is_closed_by_its_second_event() -> None:
    story = (
        Story()
        .at(1, Action.CHECKPOINT_TRIGGERED)
        .at(2, Action.FAULT_CALLED, step=0, trigger_index=0)
    )
    story.at(3, Action.CHECKPOINT_COMPLETED, checkpoint=5)
    assert outside_window(BETWEEN, last_attempt(story.history(), 0), story.history()) != ""
    story.at(4, Action.CHECKPOINT_ALL_ACKNOWLEDGED, checkpoint=5)
    assert outside_window(BETWEEN, last_attempt(story.history(), 0), story.history()) == ""


def test_a_window_is_judged_by_its_opening_event() -> None:
    """In a record without the opening event, by the newest one before the call."""
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=0)
    history = story.at(2, Action.FAULT_CALLED, step=0, trigger_index=0).history()
    attempt = last_attempt(history, 0)
    assert outside_window(BETWEEN, attempt, history) != ""
    assert outside_window(TriggerSpec(after_s=1), attempt, history) == ""
    assert outside_window(BETWEEN, StepAttempt(), history) == ""
    unnamed = StepAttempt([replace(attempt[FaultCalled], value={"step": 0})])
    assert outside_window(BETWEEN, unnamed, history) != ""
    assert outside_window(BETWEEN, unnamed, History(history[1:])) == "", "none is recorded"
    missed = story.at(3, Action.FAULT_MISSED_WINDOW, step=0).history()
    assert outside_window(BETWEEN, last_attempt(missed, 0), missed) == ""


EPOCH_MS = 1_700_000_000_000


def windowed(
    fault: str = "kill",
    action: Action = Action.CHECKPOINT_ALL_ACKNOWLEDGED,
    closed_s: float = 5.2,
    **more: Any,
) -> str:
    """The result for an injection called at 6 s and in effect at 6.1 s, in a window that opened at
    5 s; every event but the first is observed 0.5 s after its stamp."""
    ms = {name: EPOCH_MS + round(at_s * 1000) for name, at_s in (("open", 5), ("closed", closed_s))}
    story = Story().at(1, Action.JOB_SUBMITTED, submitted_ms=EPOCH_MS + 990)
    story.at(5.5, Action.CHECKPOINT_TRIGGERED, checkpoint=4, trigger_ms=ms["open"])
    story.at(6.0, Action.FAULT_CALLED, step=0, fault=fault, trigger_index=1)
    story.at(
        6.1, Action.FAULT_IN_EFFECT, step=0, called_ns=int(6.0e9), seen_ns=int(6.1e9), evidence={}
    )
    stamps = {"ack_ms": ms["closed"]} if action == Action.CHECKPOINT_ALL_ACKNOWLEDGED else {}
    more = {"checkpoint": 4, **stamps, **more}
    history = story.at(closed_s + 0.5, action, **more).at(9, Action.JOB_FAILING).history()
    return outside_window(BETWEEN, last_attempt(history, 0), history)


def test_a_failed_checkpoint_was_not_acknowledged_by_all_at_its_last_acknowledgement() -> None:
    """It failed at 6.4 s, after the injection; some subtasks had acknowledged it at 5.2 s."""
    partly_ms = EPOCH_MS + 5_200
    assert not windowed(action=Action.CHECKPOINT_FAILED, closed_s=6.4, last_ack_ms=partly_ms)
    assert windowed(action=Action.CHECKPOINT_COMPLETED, closed_s=6.4, last_ack_ms=partly_ms)


def test_a_window_that_closed_before_the_injection_is_reported() -> None:
    assert windowed(closed_s=5.2) == (
        '"checkpoint all acknowledged" had closed its window 0.9 s before, and the record does not '
        "report it as missed"
    )
    assert windowed(closed_s=6.15) == "", "it was still open"
    assert windowed(closed_s=6.05) == "", "within the tolerance of the clocks"
    assert windowed(checkpoint=5) == "", "another checkpoint's"
    assert windowed("clock_skew") == "", "the engine's stamps were moved"


def test_the_end_of_a_checkpoint_shows_when_its_window_closed() -> None:
    late = windowed(action=Action.CHECKPOINT_COMPLETED, closed_s=6.4, last_ack_ms=EPOCH_MS + 5_200)
    assert late.startswith('"checkpoint all acknowledged" had closed its window 0.9 s before')


@pytest.mark.parametrize(("closed_s", "missed"), [(5.2, True), (5.55, False)])
def test_the_fault_causes_a_checkpoint_failure_after_its_call(
    closed_s: float, missed: bool
) -> None:
    """Its failure has no stamp; it is observed 0.5 s later."""
    assert bool(windowed(action=Action.CHECKPOINT_FAILED, closed_s=closed_s)) == missed


@pytest.mark.parametrize(
    ("when", "index", "wrong"),
    [
        (TriggerSpec(event="checkpoint completed"), 2, ""),
        (TriggerSpec(event="checkpoint completed"), None, ""),
        (TriggerSpec(event="checkpoint completed"), 1, 'no "checkpoint completed" triggered it'),
        (TriggerSpec(event="checkpoint completed"), 4, 'no "checkpoint completed" triggered it'),
        (TriggerSpec(event="checkpoint completed"), 99, 'no "checkpoint completed" triggered it'),
        (TriggerSpec(event="checkpoint failed"), None, 'no "checkpoint failed" triggered it'),
        (TriggerSpec(between=("checkpoint triggered", "checkpoint completed")), 1, ""),
        (TriggerSpec(between=("checkpoint failed", "job running")), None, 'no "checkpoint failed"'),
        (TriggerSpec(effect_of="kill"), 2, 'no "fault in effect" triggered it'),
        (TriggerSpec(metric="lag", above=1), None, ""),
        (TriggerSpec(after_s=2), None, ""),
        (
            TriggerSpec(after_s=2.1),
            None,
            "it should have been injected 2.1 s after steady state, and was",
        ),
    ],
)
def test_a_fault_is_injected_when_its_trigger_fires(
    when: TriggerSpec, index: int | None, wrong: str
) -> None:
    story = Story().at(2, Action.PHASE, phase="disturb").checkpoint(1, 2.5, 3)
    named = {} if index is None else {"trigger_index": index}
    history = story.at(4, Action.FAULT_CALLED, step=0, **named).checkpoint(2, 5, 6).history()
    message = trigger_problem(when, history.of(FaultCalled)[0], history, (KILLED,))
    assert (wrong in message) if wrong else message == ""
    assert trigger_problem(when, None, history) == "", "the call is not recorded"


COMPLETED, TRIGGERED = "checkpoint completed", "checkpoint triggered"


@pytest.mark.parametrize(
    ("when", "index", "wrong"),
    [
        (TriggerSpec(event=COMPLETED, nth=2), 6, ""),
        (TriggerSpec(event=COMPLETED, nth=2), None, ""),
        (TriggerSpec(event=COMPLETED, nth=1), 6, ""),  # another check reports lateness
        (TriggerSpec(event=COMPLETED, nth=2), 4, f'no. 2, and no "{COMPLETED}" triggered it'),
        (TriggerSpec(event=COMPLETED, nth=3), 6, f'no. 3, and no "{COMPLETED}" triggered it'),
        (TriggerSpec(event=COMPLETED, nth=3), None, f'no. 3, and no "{COMPLETED}" triggered it'),
        (TriggerSpec(event=COMPLETED), 1, f'no "{COMPLETED}" triggered it'),  # before steady state
        (TriggerSpec(event=COMPLETED, delay_s=3), 6, ""),
        (TriggerSpec(event=COMPLETED, delay_s=3), 4, ""),
        (TriggerSpec(event=COMPLETED, delay_s=3.5), 6, "+ 3.5 s, and was called 3.0 s after that"),
        (TriggerSpec(event=COMPLETED, delay_s=3.5), None, ""),
        (TriggerSpec(event=COMPLETED, nth=2, delay_s=3.5), None, "was called 3.0 s after that"),
        (TriggerSpec(between=(TRIGGERED, COMPLETED), nth=2), 5, ""),
        (TriggerSpec(between=(TRIGGERED, COMPLETED), nth=1, tries=2), 5, ""),
        (TriggerSpec(between=(TRIGGERED, COMPLETED), nth=2), 3, f'no "{TRIGGERED}" triggered it'),
        (TriggerSpec(between=(TRIGGERED, COMPLETED), delay_s=9), 5, "was called 4.0 s after that"),
    ],
)
def test_occurrences_and_delays_count_from_steady_state(
    when: TriggerSpec, index: int | None, wrong: str
) -> None:
    story = Story().checkpoint(1, 0.5, 1).at(2, Action.PHASE, phase="disturb")
    story.checkpoint(2, 3, 4).checkpoint(3, 5, 6)
    named = {} if index is None else {"trigger_index": index}
    history = story.at(9, Action.FAULT_CALLED, step=0, **named).history()
    message = trigger_problem(when, history.of(FaultCalled)[0], history)
    assert (wrong in message) if wrong else message == ""


def test_a_delay_counts_from_the_engines_stamp_unless_clocks_were_moved() -> None:
    def text(fault: str, delay_s: float) -> str:
        """The message for a call 1 s after the observation of an event that happened 2 s
        earlier."""
        story = Story().at(1, Action.JOB_SUBMITTED, submitted_ms=EPOCH_MS + 1000)
        story.at(5, Action.CHECKPOINT_TRIGGERED, checkpoint=4, trigger_ms=EPOCH_MS + 3000)
        history = story.at(6, Action.FAULT_CALLED, fault=fault, trigger_index=1).history()
        (called,) = history.of(FaultCalled)
        return trigger_problem(TriggerSpec(event=TRIGGERED, delay_s=delay_s), called, history)

    assert text("kill", 3) == ""
    assert "was called 3.0 s after that" in text("kill", 4)
    assert text("clock_skew", 4) == ""


KILLED = Step(fault="kill", target="one of flink/taskmanager", when=TriggerSpec(after_s=1))
PAUSED = Step(fault="pause", target="one of flink/taskmanager", when=TriggerSpec(after_s=2))


@pytest.mark.parametrize(
    ("when", "index", "wrong"),
    [
        (TriggerSpec(effect_of=1), 1, ""),
        (TriggerSpec(effect_of="kill"), 1, ""),
        (TriggerSpec(effect_of="kill"), None, ""),
        (TriggerSpec(effect_of=2), 2, ""),
        (TriggerSpec(effect_of=1), 2, 'no "fault in effect" triggered it'),
        (TriggerSpec(effect_of="pause"), 1, 'no "fault in effect" triggered it'),
        (TriggerSpec(effect_of=1, delay_s=3), 1, ""),
        (TriggerSpec(effect_of=1, delay_s=3.5), 1, "+ 3.5 s, and was called 3.0 s after that"),
        (TriggerSpec(effect_of=3), 1, "there is no step 3 before this one"),
    ],
)
def test_the_trigger_effect_is_that_of_the_referenced_step(
    when: TriggerSpec, index: int | None, wrong: str
) -> None:
    story = Story().at(1, Action.PHASE, phase="disturb").effect(2).effect(3, step=1)
    named = {} if index is None else {"trigger_index": index}
    history = story.at(5, Action.FAULT_CALLED, step=2, **named).history()
    message = trigger_problem(when, history.of(FaultCalled)[0], history, (KILLED, PAUSED))
    assert (wrong in message) if wrong else message == ""


def test_disturbed_targets_are_collected_per_step_over_all_samples() -> None:
    story = Story().at(1, Action.FAULT_CALLED, step=1)
    seen = {"a": {DISTURBED: PROBE_ALONE}, "b": {DISTURBED: SYSTEM}, "watched": "ss", "c": {}}
    story.at(2, Action.FAULT_IN_EFFECT, step=0, evidence={"z": {DISTURBED: PROBE_ALONE}})
    story.at(2, Action.FAULT_IN_EFFECT, step=1, evidence=seen)
    assert targets_of_probe_alone(story.history(), 1) == ("a",)
    assert targets_of_probe_alone(story.history(), 0) == ("z",)
    for action in (Action.FAULT_STILL_IN_EFFECT, Action.FAULT_ENDED_EARLY):
        later = Story().at(2, Action.FAULT_IN_EFFECT, step=1, evidence=seen)
        later.at(3, action, step=1, evidence={"a": {DISTURBED: SYSTEM}})
        assert targets_of_probe_alone(later.history(), 1) == ()
    again = story.at(4, Action.FAULT_CALLED, step=1).at(5, Action.FAULT_STILL_IN_EFFECT, step=1)
    assert targets_of_probe_alone(again.history(), 1) == ()


def test_the_newest_checkpoint_shows_in_flight_data() -> None:
    story = Story().at(1, Action.DRAINED)
    assert not_drained(story.history()) is None, "a run without a job has none"
    story.at(5, Action.CHECKPOINT_COMPLETED, checkpoint=7, persisted_bytes=1)
    assert not_drained(story.history()) == (
        "the newest checkpoint, 7, still held 1 bytes of in-flight data"
    )
    assert not_drained(story.at(6, Action.CHECKPOINT_COMPLETED, checkpoint=8).history()) is None
    unread = Story().at(2, Action.OUTPUTS_NOT_QUIET, reason="second")
    assert not_drained(unread.history()) == "second"


@pytest.mark.parametrize(
    ("edges", "triggered_s", "drained"),
    [
        ([("load", "sink"), ("other", "sink")], (4.1, 4.2), True),
        ([("load", "sink"), ("other", "sink")], (3.9, 4.2), False),
        ([("load", "other"), ("other", "sink")], (4.1, 4.2), False),
        (None, (4.1, 4.2), False),
    ],
    ids=["other-source", "before-the-load-ended", "one-source", "no-edges-recorded"],
)
def test_records_of_another_source_may_be_in_flight_after_the_load(
    edges: list[tuple[str, str]] | None, triggered_s: tuple[float, float], drained: bool
) -> None:
    vertices = [{"id": name, "name": name, "parallelism": 1} for name in ("load", "other", "sink")]
    graph = {} if edges is None else {"edges": [edge(*each) for each in edges]}
    story = Story().at(1, Action.JOB_SUBMITTED, job="j", vertices=vertices, **graph).sent(4, 10)
    for number, second in enumerate(triggered_s):
        story.at(second, Action.CHECKPOINT_TRIGGERED, job="j", checkpoint=number)
        story.at(5 + number, Action.CHECKPOINT_COMPLETED, job="j", checkpoint=number)
    story.at(7, Action.DRAINED)
    story.at(8, Action.CHECKPOINT_COMPLETED, job="j", checkpoint=3, persisted_bytes=4028)
    assert (not_drained(story.history()) is None) == drained


def edge(source: str, target: str) -> dict[str, str]:
    return {"from": source, "to": target, "ship": "HASH", "exchange": "PIPELINED"}


def test_a_wait_without_a_reason_has_none() -> None:
    story = Story().at(2, Action.NOT_RECOVERED).at(3, Action.OUTPUTS_NOT_QUIET)
    story.at(4, Action.NOT_RECOVERED, reason="inputs were read")
    assert [(each.wait, each.reason) for each in failed_waits(story.history())] == [
        ("recovery", ""),
        ("outputs quiet", ""),
        ("recovery", "inputs were read"),
    ]


LOAD = Numbered(records=1000, rate_per_s=20)


def loaded(done_s: float, sent_s: float = 1.0, count: int = 1000, **done: Any) -> Story:
    return Story().sent(sent_s, count).at(done_s, Action.WORKLOAD_DONE, **done)


def test_a_load_may_end_late_by_half_of_its_planned_time() -> None:
    assert list(load_problems(LOAD, loaded(76.0).history())) == []
    (behind,) = load_problems(LOAD, loaded(76.1).history())
    assert behind == (
        "it ended 25 s after its plan of 50 s, beyond what the faults explain; the machine was too "
        "busy, or the rate is too high for it"
    )


def test_a_fault_may_delay_a_load_by_twice_its_duration() -> None:
    about = {"step": 0, "fault": "kill", "target": "x"}
    story = loaded(96.0).at(10, Action.FAULT_CALLED, **about)
    healed = loaded(96.1).at(10, Action.FAULT_CALLED, **about)
    for each in (story, healed):
        each.at(11, Action.FAULT_IN_EFFECT, **about).at(20, Action.FAULT_HEALED, **about)
    assert list(load_problems(LOAD, story.history())) == []
    assert len(list(load_problems(LOAD, healed.history()))) == 1
    never = loaded(196.0).at(100, Action.FAULT_CALLED, **about)
    assert list(load_problems(LOAD, never.history())) == []


def test_every_problem_of_a_load_is_reported() -> None:
    short = Story().sent(1, 999)
    assert list(load_problems(LOAD, short.history())) == [
        "its end is not recorded",
        "999 of 1,000 planned records were sent",
    ]
    assert list(load_problems(LOAD, Story().sent(1, 1000).history())) == ["its end is not recorded"]


def recovered() -> Story:
    """One kill at 10 s that the engine reported at 9.9 s; recovered at 14 s; the next fault at 40
    s."""
    about = {"fault": "kill", "target": "x"}
    story = Story().sent(5, 10).at(9.5, Action.FAULT_CALLED, step=0, **about)
    story.effect(10).at(10.5, Action.JOB_RESTARTING).at(11, Action.JOB_RESTORED, checkpoint=1)
    story.at(12, Action.JOB_RUNNING).checkpoint(2, 12, 13).at(14, Action.OUTPUT_SEEN, end=1)
    story.at(15, Action.FAULT_HEALED, step=0, **about).sent(20, 10)
    story.at(40, Action.FAULT_CALLED, step=1, **about).at(
        41, Action.FAULT_IN_EFFECT, step=1, seen_ns=41 * 10**9, evidence={}
    )
    return story.sent(50, 10).at(60, Action.DRAINED)


def test_a_recovery_has_every_phase_to_the_next_fault(tmp_path: Path) -> None:
    first, second = recoveries_of(recovered().history(), tmp_path / "none", only_files=False)
    assert first == RecoveryPhases(
        fault="kill",
        step=0,
        effect_at_s=10,
        until_s=30,
        watched_s=30,
        loaded_s=30,
        overlaps=(),
        detected_s=0.5,
        restarted_s=2,
        restored_s=1,
        first_output_s=4,
        lag_normal_s=None,
        first_checkpoint_s=3,
    )
    assert second == RecoveryPhases(
        fault="kill",
        step=1,
        effect_at_s=41,
        until_s=None,
        watched_s=19,
        loaded_s=9,
        overlaps=(),
        detected_s=None,
        restarted_s=None,
        restored_s=None,
        first_output_s=None,
        lag_normal_s=None,
        first_checkpoint_s=None,
    )
    assert first.to_json() == {
        "detected_s": 0.5,
        "restarted_s": 2.0,
        "restored_s": 1.0,
        "first_output_s": 4.0,
        "lag_normal_s": None,
        "first_checkpoint_s": 3.0,
    }
    assert recoveries_of(Story().history(), tmp_path / "none", only_files=False) == ()


def test_phases_are_rounded_to_milliseconds(tmp_path: Path) -> None:
    (first, _) = recoveries_of(recovered().history(), tmp_path / "none", only_files=False)
    recorded = replace(first, detected_s=0.12345, restored_s=None).to_json()
    assert (recorded["detected_s"], recorded["restored_s"]) == (0.123, None)


def test_events_at_the_call_of_the_next_fault_belong_to_that_fault(tmp_path: Path) -> None:
    about = {"fault": "kill", "target": "x"}
    story = Story().at(10, Action.FAULT_CALLED, step=0, **about).effect(10)
    story.at(11, Action.FAULT_HEALED, step=0, **about)
    story.at(20, Action.FAULT_CALLED, step=1, **about).at(20, Action.OUTPUT_SEEN, end=1)
    story.effect(20, step=1)
    first, _ = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert first.first_output_s is None
    assert (first.until_s, first.watched_s, first.loaded_s) == (10, 10, -10)


@pytest.mark.parametrize(
    ("kind", "triggered_s", "counts"),
    [
        ("", 11.9, False),
        ("", 12.0, True),
        (MICRO_BATCH, 10.9, False),
        (MICRO_BATCH, 11.0, True),
    ],
)
def test_a_checkpoint_counts_when_it_was_triggered_after_the_restart(
    tmp_path: Path, kind: str, triggered_s: float, counts: bool
) -> None:
    story = Story().effect(10).at(10.5, Action.JOB_FAILING).at(11, Action.JOB_RESTORED)
    story.at(12, Action.JOB_RUNNING)
    story.at(triggered_s, Action.CHECKPOINT_TRIGGERED, checkpoint=5, type=kind)
    story.at(13, Action.CHECKPOINT_COMPLETED, checkpoint=5)
    (found,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert (found.first_checkpoint_s == 3) == counts


def test_only_commits_with_input_rows_count_as_file_output(tmp_path: Path) -> None:
    story = Story().effect(10).at(11, Action.FAULT_HEALED, step=0).at(12, Action.OUTPUT_SEEN)
    for number, rows in ((1, {"input_rows": 0}), (2, {})):
        story.at(12 + number, Action.CHECKPOINT_TRIGGERED, checkpoint=number)
        story.at(12.5 + number, Action.CHECKPOINT_COMPLETED, checkpoint=number, **rows)
    (found,) = recoveries_of(story.history(), tmp_path / "none", only_files=True)
    assert (found.first_output_s, found.first_checkpoint_s) == (4.5, 3.5)
    (seen,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert seen.first_output_s == 2


def test_without_a_heal_there_is_no_resume(tmp_path: Path) -> None:
    story = Story().effect(10).at(12, Action.OUTPUT_SEEN).checkpoint(3, 12, 13)
    (found,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert (found.first_output_s, found.first_checkpoint_s) == (None, None)


def test_the_restart_after_the_last_failure_counts(tmp_path: Path) -> None:
    story = Story().effect(10).at(11, Action.JOB_RESTARTING).at(12, Action.JOB_RUNNING)
    story.at(13, Action.JOB_RESTARTING).at(13, Action.JOB_RUNNING)
    (found,) = recoveries_of(story.history(), tmp_path / "none", only_files=False)
    assert found.restarted_s == 3


@pytest.mark.parametrize(
    ("index", "found"),
    [(None, 2), (0, 0), (2, 2), (1, None), (3, None), (4, None), (5, None), (-3, None)],
)
def test_the_trigger_is_an_earlier_event_of_the_awaited_kind(
    index: int | None, found: int | None
) -> None:
    """Records of older versions name none: there it is the newest before the call."""
    story = Story().checkpoint(1, 1, 2).checkpoint(2, 3, 4)
    named = {} if index is None else {"trigger_index": index}
    story.at(5, Action.FAULT_CALLED, step=0, **named).at(6, Action.CHECKPOINT_TRIGGERED)
    history = story.history()
    event = trigger_event(TriggerSpec(event=TRIGGERED), history.of(FaultCalled)[0], history)
    assert (None if event is None else event.index) == found


@pytest.mark.parametrize(("called_s", "wrong"), [(2.989, True), (2.99, False), (3, False)])
def test_a_fault_is_not_called_before_its_moment(called_s: float, wrong: bool) -> None:
    """The clocks are equal but for a hundredth of a second."""
    history = Story().at(called_s, Action.FAULT_CALLED, step=0).history()
    message = trigger_problem(TriggerSpec(after_s=3), history.of(FaultCalled)[0], history)
    expected = "it should have been injected 3 s after steady state, and was called at 3.0 s"
    assert message == (expected if wrong else "")


@pytest.mark.parametrize(
    ("healed_s", "message"),
    [
        (1.999, "its removal was seen before its effect"),
        (2, ""),
        (4.989, "its removal was seen before its heal was called"),
        (4.99, ""),
        (5, ""),
    ],
)
def test_a_removal_is_seen_after_the_effect_and_after_its_heal_was_called(
    healed_s: float, message: str
) -> None:
    story = Story().at(1, Action.FAULT_CALLED, step=0).effect(2)
    if healed_s > 2:
        story.at(5, Action.HEAL_CALLED, step=0)
    story.at(6, Action.FAULT_HEALED, step=0, seen_ns=round(healed_s * 1e9))
    history = story.history()
    assert not_healed(last_attempt(history, 0), history) == message


@pytest.mark.parametrize(
    ("after_s", "of_effect", "of_stamp"),
    [
        (2.85, False, False),
        (2.9, False, True),
        (2.95, False, True),
        (2.989, False, True),
        (2.99, True, True),
        (3, True, True),
    ],
)
def test_a_delay_is_as_exact_as_the_moment_that_it_counts_from(
    after_s: float, of_effect: bool, of_stamp: bool
) -> None:
    """An effect was seen by the harness; a stamp of the engine is related to the run's clock."""

    def in_time(when: TriggerSpec, index: int) -> bool:
        story = Story().at(1, Action.PHASE, phase="disturb").effect(2)
        story.at(2, Action.CHECKPOINT_TRIGGERED, checkpoint=1)
        story.at(2 + after_s, Action.FAULT_CALLED, step=1, trigger_index=index)
        history = story.history()
        return trigger_problem(when, history.of(FaultCalled)[0], history, (KILLED,)) == ""

    assert in_time(TriggerSpec(effect_of=1, delay_s=3), 1) == of_effect
    assert in_time(TriggerSpec(event=TRIGGERED, delay_s=3), 2) == of_stamp


@pytest.mark.parametrize(
    ("healed", "message"),
    [
        ((True, True, True), ""),
        ((True, False, True), "an injection called at 11.0 s was not healed"),
        ((False, False, True), "an injection called at 1.0 s was not healed"),
        ((True, True, False), ""),  # the last one is judged by its own events
    ],
)
def test_every_earlier_injection_of_a_step_has_to_be_healed(
    healed: tuple[bool, ...], message: str
) -> None:
    story = Story()
    for number, is_healed in enumerate(healed):
        at_s = 1 + 10 * number
        story.at(at_s, Action.FAULT_CALLED, step=0, fault="kill", target="x").effect(at_s + 1)
        if is_healed:
            story.at(at_s + 2, Action.FAULT_HEALED, step=0, fault="kill", target="x")
    story.at(0, Action.FAULT_CALLED, step=1, fault="kill", target="y").effect(1, step=1)
    assert unhealed_earlier_attempt(fault_windows(story.history()), 0) == message


def test_every_node_without_a_removal_is_named() -> None:
    about = {"step": 0, "nodes": ["a", "b", "c"]}
    story = Story().at(1, Action.FAULT_CALLED, **about)
    story.at(2, Action.FAULT_IN_EFFECT, **about, seen_ns=2 * 10**9, evidence={})
    story.at(
        6, Action.FAULT_HEALED, **about, seen_ns=6 * 10**9, evidence={"a": {}, "b": {"pid": 7}}
    )
    history = story.history()
    assert not_healed(last_attempt(history, 0), history) == "no removal was seen on a, c"


@pytest.mark.parametrize(
    ("last", "status", "named", "message"),
    [
        (500, "acknowledged", 0, ""),
        (500, "acknowledged", None, ""),
        (499, "acknowledged", 0, 'and no "records sent" triggered it'),
        (900, "unknown", 0, 'and no "records sent" triggered it'),
    ],
)
def test_a_fault_at_a_record_is_called_after_its_acknowledgement(
    last: int, status: str, named: int | None, message: str
) -> None:
    story = Story().at(1, Action.SENT, first=0, last=last, count=last + 1, status=status)
    index = {} if named is None else {"trigger_index": named}
    history = story.at(2, Action.FAULT_CALLED, step=0, **index).history()
    found = trigger_problem(TriggerSpec(at_record=500), history.of(FaultCalled)[0], history)
    assert found == (f"it should have been injected at record 500, {message}" if message else "")


def test_a_fault_at_a_record_waits_for_its_delay() -> None:
    story = Story().at(1, Action.SENT, first=0, last=500, count=501, status="acknowledged")
    history = story.at(2, Action.FAULT_CALLED, step=0, trigger_index=0).history()
    when = TriggerSpec(at_record=500, delay_s=1.5)
    found = trigger_problem(when, history.of(FaultCalled)[0], history)
    assert found == (
        "it should have been injected at record 500 + 1.5 s, and was called 1.0 s after that"
    )
