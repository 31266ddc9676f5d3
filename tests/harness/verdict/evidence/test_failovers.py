"""The failovers of a run: where each begins and ends, and which tasks it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from streamquake.harness.verdict.evidence.failovers import (
    Failover,
    affects_no_task,
    all_tasks_ran_again,
    failovers,
    fault_name,
    is_over_by_batches,
    is_over_by_tasks,
    unnoticed_fault,
)
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.job_events import TaskChanged
from streamquake.reports.record.metrics import Samples
from tests.harness.histories import Story
from tests.harness.verdict.checks.test_failover_scope_of_several import ALL, FIRST, Failovers

RUNNING: Mapping[str, Any] = {}


def of(story: Story, *, over: bool = True) -> list[Failover]:
    return list(failovers(story.history(), lambda failover: over))


def only(story: Story) -> Failover:
    (found,) = of(story, over=False)
    return found


def tasks(failover: Failover) -> list[tuple[str, int, str]]:
    """The events of tasks in the history of a failover: vertex, subtask, state."""
    return [(e.vertex, e.subtask, e.state) for e in failover.history.of(TaskChanged)]


def changed(
    story: Story, at_s: float, state: str, *, job: str | None = None, subtask: int = 0
) -> None:
    about = {"vertex": "a", "vertex_name": "a", "subtask": subtask, "attempt": 0, "node": "tm-0"}
    story.at(at_s, Action.TASK_CHANGED, **about, state=state, **({"job": job} if job else {}))


def injected(story: Story, called_s: float, step: int, fault: str = "kill") -> Story:
    """A fault on a TaskManager, whose effect is seen a tenth of a second after its call."""
    return story.at(
        called_s + 0.1,
        Action.FAULT_IN_EFFECT,
        step=step,
        fault=fault,
        nodes=["tm-0"],
        called_ns=round(called_s * 1e9),
        seen_ns=round((called_s + 0.1) * 1e9),
    )


def test_a_fault_without_a_name_is_called_a_fault() -> None:
    story = Story().at(1, Action.FAULT_IN_EFFECT, step=3, called_ns=1, seen_ns=2)
    (injected,) = story.history().of(FaultInEffect)
    assert fault_name(injected) == "fault (faults[3])"


@pytest.mark.parametrize(("submitted_s", "kept"), [(9.9, 0), (10.0, 0), (10.1, 1)])
def test_the_tasks_of_a_job_that_was_replaced_by_then_are_left_out(
    submitted_s: float, kept: int
) -> None:
    story = Failovers().at(0.6, Action.JOB_SUBMITTED, job="old")
    changed(story, 5, "RUNNING", job="old", subtask=7)
    story.at(submitted_s, Action.JOB_SUBMITTED, job="new")
    found = only(injected(story, 10, 0))
    assert [subtask for _, subtask, _ in tasks(found)].count(7) == kept


def around_a_rescale(order_s: float, submitted_s: float | None = None) -> Failover:
    """A rescale, with subtask 5 that is observed last before it, 6 that ends and 7 that runs after
    it, and a kill at 20 s."""
    story = Story() if submitted_s is None else Story().at(submitted_s, Action.JOB_SUBMITTED)
    changed(story, 9, "RUNNING", subtask=5)
    injected(story, order_s, 0, "rescale")
    for subtask in (6, 7):
        changed(story, 11, "RUNNING", subtask=subtask)
    changed(story, 12, "FINISHED", subtask=6)
    changed(story, 21, "RUNNING", subtask=8)
    injected(story, 20, 1)
    return of(story)[-1]


def test_after_a_rescale_only_the_tasks_that_ran_since_count() -> None:
    found = around_a_rescale(10)
    assert found.rescaled
    assert {subtask for _, subtask, _ in tasks(found)} == {7, 8}


def test_a_rescale_after_which_no_task_was_seen_changed_none() -> None:
    found = around_a_rescale(12)
    assert not found.rescaled
    assert {subtask for _, subtask, _ in tasks(found)} == {5, 6, 7, 8}


@pytest.mark.parametrize(("submitted_s", "rescaled_by_then"), [(9.0, True), (10.0, False)])
def test_a_rescale_of_a_job_that_was_submitted_later_does_not_count(
    submitted_s: float, rescaled_by_then: bool
) -> None:
    assert around_a_rescale(10, submitted_s).rescaled == rescaled_by_then


@pytest.mark.parametrize(
    ("healed_step", "healed_s", "kept"), [(0, 15, {8}), (3, 15, {7, 8}), (0, 25, {7, 8})]
)
def test_the_heal_of_a_rescale_is_an_order_too(
    healed_step: int, healed_s: float, kept: set[int]
) -> None:
    story = Story()
    injected(story, 10, 0, "rescale")
    changed(story, 11, "RUNNING", subtask=7)
    story.at(healed_s, Action.HEAL_CALLED, step=healed_step)
    changed(story, 16, "RUNNING", subtask=8)
    injected(story, 20, 1)
    assert {subtask for _, subtask, _ in tasks(of(story)[-1])} == kept


def test_several_faults_of_one_failover_may_be_meant_and_a_single_one_not() -> None:
    single = only(Failovers().injected(10, 0, "kafka/broker-1"))
    assert single.ambiguous_faults({FIRST[0]}) == ()
    both = only(Failovers().injected(10, 0, "kafka/broker-1").injected(12, 1, "kafka/broker-2"))
    assert [fault.step for fault in both.ambiguous_faults({FIRST[0]})] == [0, 1]
    assert both.ambiguous_faults(set()) == ()


def test_a_restart_before_any_later_fault_is_early() -> None:
    """Three faults: the tasks of `OTHER` restart before the second one, out of reach of the
    first."""
    story = Failovers().injected(10, 0, "tm-0").failed(11).restarted(12, ALL)
    story.injected(20, 1, "tm-1").injected(21, 2, "tm-1")
    found = only(story)
    early = found.restarted_early(lambda reached: reached)
    assert early == {place for place in ALL if place not in FIRST}


def over_by_tasks(story: Story) -> bool:
    return is_over_by_tasks(only(story), RUNNING)


def test_a_failover_is_over_when_all_affected_tasks_restarted_and_all_ran() -> None:
    story = Failovers().injected(10, 0, "tm-0")
    assert not over_by_tasks(story), "its tasks did not restart yet"
    story.failed(11)
    assert not over_by_tasks(story)
    assert over_by_tasks(story.restarted(12, ALL))


def test_a_fault_on_another_system_is_over_unless_the_job_failed() -> None:
    story = Failovers().injected(10, 0, "kafka/broker-1")
    assert affects_no_task(only(story))
    assert over_by_tasks(story)
    story.failed(9.5)
    assert over_by_tasks(story), "the failure was before the fault"
    story.failed(11)
    assert not over_by_tasks(story), "the job failed, and did not run again"


def test_tasks_that_ran_as_the_fault_took_effect_did_not_run_again() -> None:
    story = Failovers().injected(10, 0, "tm-0")
    effect_ns = 10_000_000_000
    assert not all_tasks_ran_again(story.history(), effect_ns)
    at_once = Failovers().injected(10, 0, "tm-0").at(10, Action.JOB_RUNNING)
    changed(at_once, 10, "CANCELED")
    assert all_tasks_ran_again(at_once.history(), effect_ns), "it changed with the fault"
    changed(at_once, 10.000_000_001, "CANCELED")
    assert not all_tasks_ran_again(at_once.history(), effect_ns)


@pytest.mark.parametrize(("triggered_s", "over"), [(10.1, False), (10.2, True)])
def test_a_batch_that_began_after_the_effect_ends_a_failover(
    triggered_s: float, over: bool
) -> None:
    story = Failovers().injected(10, 0, "tm-0").checkpoint(1, triggered_s, 12)
    assert is_over_by_batches(only(story)) == over


def unnoticed(story: Story) -> int | None:
    found = unnoticed_fault(only(story))
    return None if found is None else found.step


def test_a_fault_that_was_over_without_a_failure_is_unnoticed() -> None:
    def two(node: str = "tm-0", fault: str = "kill") -> Failovers:
        return Failovers().injected(10, 0, node, fault).healed(14, 0)

    assert unnoticed(two().injected(20, 1, "tm-1")) == 0
    assert unnoticed(two().failed(9).injected(20, 1, "tm-1")) == 0, "an earlier failure"
    assert unnoticed(two().failed(12).injected(20, 1, "tm-1")) is None
    assert unnoticed(two("kafka/broker-1").injected(20, 1, "tm-1")) is None
    assert unnoticed(two(fault="slow_link").injected(20, 1, "tm-1")) is None
    still = Failovers().injected(10, 0, "tm-0").injected(20, 1, "tm-1")
    assert unnoticed(still) is None, "it was not healed"


@pytest.mark.parametrize(("failed_s", "end_s"), [(50.0, 48.0), (11.0, None)])
def test_a_failover_ends_two_seconds_before_a_failure_that_is_not_its_own(
    failed_s: float, end_s: float | None
) -> None:
    story = Failovers().injected(10, 0, "tm-0").failed(11).restarted(12, ALL).healed(13, 0)
    if failed_s > 12:
        story.failed(failed_s)
    (found,) = of(story)
    assert found.end_ns == (None if end_s is None else round(end_s * 1e9))


@pytest.mark.parametrize(("end_s", "kept"), [(None, 4), (3.0, 3), (2.9, 2)])
def test_samples_until_the_end_of_a_failover_count(end_s: float | None, kept: int) -> None:
    story = Failovers().injected(1, 0, "tm-0")
    found = only(story) if end_s is None else only(story).until(round(end_s * 1e9))
    samples = Samples(at_s=np.arange(1.0, 5.0), value=np.arange(11.0, 15.0))
    part = found.samples({"a/0": samples})["a/0"]
    assert part.at_s.tolist() == [1.0, 2.0, 3.0, 4.0][:kept]
    assert part.value.tolist() == [11.0, 12.0, 13.0, 14.0][:kept]


@pytest.mark.parametrize("action", [Action.FAULT_HEALED, Action.FAULT_ENDED_EARLY])
@pytest.mark.parametrize(("over_s", "active"), [(19.9, []), (20.0, []), (20.1, [0])])
def test_a_fault_that_was_healed_or_ended_early_by_then_is_over(
    action: Action, over_s: float, active: list[int]
) -> None:
    story = Failovers().injected(10, 0, "tm-0").injected(20, 1, "tm-1")
    story.at(over_s, action, step=0, seen_ns=0)
    later = of(story)[-1]
    assert [fault.step for fault in later.active_faults] == active


def test_restarts_that_only_running_times_show_end_a_failover() -> None:
    """The engine's own numbers of attempts were not seen."""
    story = Failovers().injected(10, 0, "tm-0").failed(11).at(13, Action.JOB_RUNNING)
    assert not over_by_tasks(story)
    back = {
        f"{vertex}/{subtask}": Samples(
            at_s=np.arange(9.0, 17.0), value=np.array([8e3, 9e3, 0, 0, 0, 1e3, 2e3, 3e3])
        )
        for vertex, subtask in ALL
    }
    assert is_over_by_tasks(only(story), back)
