"""An exact replay: the same nodes, at the same counts of checkpoints, batches or records."""

from __future__ import annotations

from typing import Any

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.run.exact_replay import BoundSchedule, bound_schedule
from streamquake.harness.run.recorded_targets import with_drawn_targets
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, experiment


def step(target: str = "one of flink/taskmanager", **when: Any) -> Step:
    return Step(fault="kill", target=target, when=TriggerSpec(**when), for_s=2.0)


def called(story: Story, at_s: float, number: int, *nodes: str, **value: Any) -> Story:
    return story.at(
        at_s, Action.FAULT_CALLED, step=number, fault="kill", nodes=list(nodes), **value
    )


def disturbed() -> Story:
    """A run that reached steady state after two checkpoints."""
    story = Story().checkpoint(1, 1, 2).sent(2.5, 100).checkpoint(2, 3, 4)
    return story.at(5, Action.PHASE, phase="disturb")


def bound(story: Story, *steps: Step) -> BoundSchedule:
    planned = experiment().model_copy(update={"faults": steps})
    return bound_schedule(planned, story.history())


def test_a_moment_in_seconds_becomes_the_count_of_the_newest_checkpoint() -> None:
    story = disturbed().checkpoint(3, 6, 7).at(8, Action.CHECKPOINT_TRIGGERED, checkpoint=4)
    schedule = bound(called(story, 8.25, 0, "flink/taskmanager-2"), step(after_s=3))
    (found,) = schedule.steps
    assert found.target == "flink/taskmanager-2"
    assert found.when == TriggerSpec(event="checkpoint triggered", nth=2, delay_s=0.25)
    assert (found.for_s, schedule.notes) == (2.0, ())


def test_a_batch_counts_as_a_checkpoint() -> None:
    story = disturbed().at(6, Action.SINK_WRITTEN, checkpoint=7)
    (found,) = bound(called(story, 6.5, 0, "flink/taskmanager-1"), step(after_s=1)).steps
    assert found.when == TriggerSpec(event="sink written", nth=1, delay_s=0.5)


def test_before_the_first_checkpoint_the_records_count() -> None:
    story = disturbed().sent(6, 700).sent(7, 900, "unknown")
    (found,) = bound(called(story, 7.5, 0, "flink/taskmanager-1"), step(after_s=2)).steps
    assert found.when == TriggerSpec(at_record=699)


def test_a_record_is_the_one_that_was_seen() -> None:
    """The awaited one was acknowledged before the steady state."""
    story = disturbed().sent(6, 700)
    called(story, 6.1, 0, "flink/taskmanager-1", trigger_index=story.history()[-1].index)
    (found,) = bound(story, step(at_record=50, delay_s=0.1)).steps
    assert found.when == TriggerSpec(at_record=699, delay_s=0.1)


def test_a_record_whose_acknowledgement_is_not_recorded_stays_as_it_is() -> None:
    story = Story().at(5, Action.PHASE, phase="disturb")
    (found,) = bound(called(story, 6.1, 0, "flink/taskmanager-1"), step(at_record=500)).steps
    assert found.when == TriggerSpec(at_record=500)


def test_the_newest_of_several_acknowledgements_counts() -> None:
    """One at the moment of the call is before it."""
    story = disturbed().sent(6, 700).sent(6.5, 800).sent(7, 900)
    called(story, 7, 0, "flink/taskmanager-1").sent(8, 1000)
    (found,) = bound(story, step(after_s=2)).steps
    assert found.when == TriggerSpec(at_record=899)


def test_a_delay_after_a_count_is_in_milliseconds() -> None:
    story = disturbed().checkpoint(3, 6, 7)
    (found,) = bound(called(story, 7.2504, 0, "flink/taskmanager-1"), step(after_s=2)).steps
    assert found.when == TriggerSpec(event="checkpoint completed", nth=1, delay_s=0.25)


def test_another_fault_in_effect_is_no_count() -> None:
    story = called(disturbed().checkpoint(3, 6, 7), 7.2, 0, "flink/taskmanager-1").effect(7.3)
    called(story, 8.25, 1, "flink/taskmanager-2")
    _, found = bound(story, step(after_s=2.2), step(after_s=3.25)).steps
    assert found.when == TriggerSpec(event="checkpoint completed", nth=1, delay_s=1.25)


def test_a_record_without_phases_counts_from_its_start() -> None:
    story = called(Story().checkpoint(1, 1, 2), 3, 0, "flink/taskmanager-1")
    (found,) = bound(story, step(after_s=1)).steps
    assert found.when == TriggerSpec(event="checkpoint completed", nth=1, delay_s=1.0)


def test_a_metric_becomes_a_count_too() -> None:
    story = disturbed().checkpoint(3, 6, 7)
    waiting = step(metric="lag", above=10)
    (found,) = bound(called(story, 9, 0, "flink/taskmanager-1"), waiting).steps
    assert found.when == TriggerSpec(event="checkpoint completed", nth=1, delay_s=2.0)


def test_without_any_count_the_moment_stays_and_is_reported() -> None:
    story = Story().at(5, Action.PHASE, phase="disturb")
    schedule = bound(called(story, 6, 0, "flink/taskmanager-1"), step(after_s=1))
    assert schedule.steps[0].when == TriggerSpec(after_s=1)
    assert schedule.notes == (
        "step 1, kill on one of flink/taskmanager, keeps its moment: the record has no count "
        "before it",
    )


def test_an_event_keeps_its_number() -> None:
    story = disturbed().checkpoint(3, 6, 7).checkpoint(4, 8, 9)
    waiting = step(event="checkpoint completed", nth=2, delay_s=1.5)
    (found,) = bound(called(story, 10.5, 0, "flink/taskmanager-3"), waiting).steps
    assert found.when == waiting.when


def test_an_event_has_the_number_that_the_record_gives_it() -> None:
    """An event as early as the steady state may have escaped the trigger."""
    story = disturbed().checkpoint(3, 6, 7).checkpoint(4, 8, 9)
    called(story, 10.2, 0, "flink/taskmanager-3", trigger_index=story.history()[-1].index)
    (found,) = bound(story, step(event="checkpoint completed", nth=1, delay_s=1)).steps
    assert found.when == TriggerSpec(event="checkpoint completed", nth=2, delay_s=1)


def test_each_injection_into_a_window_is_a_step_of_its_own() -> None:
    """The first one missed its window, and is repeated as it was: it may have caused the failure.
    The second one met the window of the third checkpoint."""
    story = disturbed().checkpoint(3, 6, 6.1)
    opened = story.history()[-2].index
    called(story, 6.5, 0, "flink/taskmanager-1", trigger_index=opened)
    story.checkpoint(4, 8, 8.1).at(10, Action.CHECKPOINT_TRIGGERED, checkpoint=5)
    opened = story.history()[-1].index
    called(story, 10.1, 0, "flink/taskmanager-2", trigger_index=opened)
    window = ("checkpoint triggered", "checkpoint completed")
    first, second = bound(story, step(between=window, tries=5)).steps
    assert first.target == "flink/taskmanager-1"
    assert first.when == TriggerSpec(event="checkpoint triggered", nth=1, delay_s=0.5)
    assert second.target == "flink/taskmanager-2"
    assert second.when == TriggerSpec(between=window, nth=3, tries=1)


def test_a_step_that_was_not_injected_is_left_out_with_its_reason() -> None:
    story = disturbed().checkpoint(3, 6, 7)
    story.at(8, Action.FAULT_SKIPPED, step=0, fault="kill", reason="the trigger did not fire")
    called(story, 9, 1, "flink/taskmanager-1")
    called(story, 9.5, 2, "flink/taskmanager-2")
    steps = (step(after_s=9), step(after_s=4), step(effect_of=2, delay_s=1))
    schedule = bound(story, *steps)
    assert [each.when.kind for each in schedule.steps] == ["event", "effect_of"]
    assert schedule.steps[1].when == TriggerSpec(effect_of=1, delay_s=1)
    (note,) = schedule.notes
    assert note.endswith("is left out: the trigger did not fire")


def test_a_step_after_one_whose_injection_is_not_recorded_has_a_count() -> None:
    story = called(disturbed().checkpoint(3, 6, 7), 9, 1, "flink/taskmanager-1")
    schedule = bound(story, step(after_s=2), step(effect_of=1))
    (found,) = schedule.steps
    assert found.when == TriggerSpec(event="checkpoint completed", nth=1, delay_s=2.0)
    assert schedule.notes == (
        "step 1, kill on one of flink/taskmanager, is left out: the run did not inject it",
    )

    without_count = called(
        Story().at(5, Action.PHASE, phase="disturb"), 9, 1, "flink/taskmanager-1"
    )
    schedule = bound(without_count, step(after_s=2), step(effect_of=1))
    assert schedule.notes[1].startswith(
        "step 2, kill on one of flink/taskmanager, keeps its moment"
    )


def test_nodes_that_are_no_target_leave_the_target_as_written() -> None:
    story = disturbed().checkpoint(3, 6, 7)
    called(story, 8, 0, "flink/taskmanager-1", "kafka/broker-1")
    schedule = bound(story, step(after_s=3))
    assert schedule.steps[0].target == "one of flink/taskmanager"
    assert "keeps its target: no target is exactly flink/taskmanager-1, kafka" in schedule.notes[0]


def test_only_drawn_targets_are_bound_for_a_shrink() -> None:
    planned = experiment().model_copy(
        update={"faults": (step(after_s=1), step("the node running subtask 0 of a", after_s=2))}
    )
    story = called(Story(), 2, 0, "flink/taskmanager-3")
    found = with_drawn_targets(planned, called(story, 3, 1, "flink/taskmanager-1").history()).faults
    assert [each.target for each in found] == [
        "flink/taskmanager-3",
        "the node running subtask 0 of a",
    ]
    assert with_drawn_targets(planned, Story().history()) == planned


def test_both_ends_of_a_drawn_pair_are_bound() -> None:
    drawn = Step(
        fault="partition",
        target="from one of flink/taskmanager to all of flink/taskmanager",
        when=TriggerSpec(after_s=1),
    )
    planned = experiment().model_copy(update={"faults": (drawn,)})
    pairs = [f"flink/taskmanager-2->flink/taskmanager-{number}" for number in (1, 3)]
    (found,) = with_drawn_targets(planned, called(Story(), 2, 0, *pairs).history()).faults
    assert found.target == "from flink/taskmanager-2 to all but flink/taskmanager-2"
