"""Failures observed after the restart they caused; the engine's clock began 100 s before the
run."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.checks.recovery import Recovery
from streamquake.harness.verdict.evidence.failovers import all_tasks_ran_again
from streamquake.harness.verdict.evidence.late_observations import in_engine_order
from streamquake.harness.verdict.evidence.observation_window import observation_window_of
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import Story, case


def quick_restart(
    *,
    began_ms: int = 110_600,
    restarting_ms: int = 110_500,
    fault: str = "throw_in_task",
    task_s: float = 11,
) -> Story:
    """A task failed at 10.5 s and ran again at 11 s; the change of the job's state was observed at
    12 s."""
    about = {"step": 0, "fault": fault, "target": "x"}
    recorded = Story().at(1, Action.JOB_SUBMITTED, job="a", submitted_ms=101_000)
    recorded.sent(2, 9).at(10, Action.FAULT_CALLED, **about).effect(10.1)
    recorded.at(10.9, Action.JOB_FAILING, job="a", cause="boom", failed_ms=110_500)
    recorded.at(task_s, Action.TASK_CHANGED, job="a", state="RUNNING", start_ms=began_ms)
    recorded.at(11.1, Action.JOB_RUNNING, job="a")
    recorded.at(11.2, Action.FAULT_HEALED, **about)
    recorded.at(12, Action.JOB_RESTARTING, job="a", restart=1, restarting_ms=restarting_ms)
    recorded.checkpoint(7, 13, 14).at(14, Action.OUTPUT_SEEN, output="o", end=5, grown=5)
    return recorded.sent(90, 9).at(99, Action.DRAINED)


@pytest.mark.parametrize(
    ("reported", "back"),
    [
        (quick_restart(), True),
        (quick_restart(began_ms=110_500), True),  # within the same millisecond
        (quick_restart(task_s=11.1), True),  # both by one poll
        (quick_restart(began_ms=102_000), False),  # the poll began before the failure
        (quick_restart(restarting_ms=111_500), False),  # it restarted once more
        (quick_restart(restarting_ms=0), False),
        (quick_restart(fault="clock_skew"), False),  # the stamps prove nothing
    ],
)
def test_a_restart_observed_to_begin_after_its_end_counts_as_over(
    tmp_path: Path, reported: Story, back: bool
) -> None:
    result = Recovery(within_s=30).check(case(reported, tmp_path))
    assert result.outcome == (Outcome.HELD if back else Outcome.VIOLATED), result.summary
    assert all_tasks_ran_again(reported.history(), 10 * 10**9) == back
    assert (observation_window_of(reported.history(), 2.0).reason_not_held is None) == back


def test_only_the_late_observed_failure_is_moved() -> None:
    recorded = quick_restart().history()
    moved = {
        after.action: after.at_s
        for before, after in zip(recorded, in_engine_order(recorded), strict=True)
        if before != after
    }
    assert moved == {Action.JOB_RESTARTING: 10.5}


@pytest.mark.parametrize(
    ("failed_ms", "called_s", "moved"),
    [
        (110_500, 10.7, True),
        (110_500, 10.61, True),
        (110_500, 10.6, False),  # as exact as stamps are
        (110_500, 10.4, False),  # after the call
        (110_500, 12.1, False),  # observed before the call
        (0, 10.7, False),
    ],
)
def test_a_failure_observed_after_the_call_of_a_fault_that_it_precedes_is_moved(
    failed_ms: int, called_s: float, moved: bool
) -> None:
    story = Story().at(1, Action.JOB_SUBMITTED, job="a", submitted_ms=101_000)
    story.at(called_s, Action.FAULT_CALLED, step=0, fault="kill", target="x")
    story.at(12, Action.JOB_FAILING, job="a", cause="boom", failed_ms=failed_ms)
    (failing,) = in_engine_order(story.history()).of(Action.JOB_FAILING)
    assert failing.at_s == (10.5 if moved else 12)
