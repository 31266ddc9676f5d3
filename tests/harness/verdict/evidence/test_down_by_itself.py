"""Whether a job was down because of a failure that no fault explains."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.down_by_itself import (
    down_by_itself_since_ns,
    down_message,
    unattributed_failure_ns,
)
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

CALLED_S = 100.0


def since_s(recorded: Story, at_s: float = CALLED_S) -> float | None:
    found = down_by_itself_since_ns(recorded.history(), round(at_s * 1e9))
    return None if found is None else found / 1e9


def failed(*moments_s: float, back_s: float | None = None, job: str = "j") -> Story:
    recorded = Story()
    for at_s in moments_s:
        recorded.at(at_s, Action.JOB_FAILING, job=job)
    return recorded if back_s is None else recorded.at(back_s, Action.JOB_RUNNING, job=job)


def fault(recorded: Story, called_s: float, healed_s: float | None, step: int = 0) -> Story:
    about = {"step": step, "fault": "kill", "target": "x"}
    recorded.at(called_s, Action.FAULT_CALLED, **about)
    recorded.at(called_s, Action.FAULT_IN_EFFECT, **about, seen_ns=round(called_s * 1e9))
    if healed_s is not None:
        recorded.at(healed_s, Action.FAULT_HEALED, **about, seen_ns=round(healed_s * 1e9))
    return recorded


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (Story(), None),
        (failed(90), 90),
        (failed(90, 95), 90),
        (failed(90, back_s=100), 90),
        (failed(90, back_s=99.9), None),
        (failed(80, 95, back_s=90), 95),
        (failed(100), None),
        (failed(90).at(95, Action.JOB_RUNNING, job="another"), 90),
        (failed(90).checkpoint(1, 91, 99), None),
        (failed(90).checkpoint(1, 91, 100), 90),
        (failed(90).checkpoint(1, 89, 99), 90),
        (Story().at(90, Action.JOB_ENDED, job="j", state="FINISHED"), None),
        (Story().at(90, Action.JOB_ENDED, job="j", state="FAILED"), 90),
    ],
)
def test_a_failure_before_any_fault_is_its_own_until_the_job_runs(
    recorded: Story, expected: float | None
) -> None:
    assert since_s(recorded) == expected
    assert since_s(fault(recorded, CALLED_S, 110)) == expected


@pytest.mark.parametrize(
    ("called_s", "healed_s", "expected"),
    [
        (20, 60, 90),
        (20, 60.1, None),  # a fault may have late effects
        (20, None, None),
        (90, 95, None),
    ],
)
def test_a_failure_long_after_all_earlier_faults_is_its_own(
    called_s: float, healed_s: float | None, expected: float | None
) -> None:
    assert since_s(fault(failed(90), called_s, healed_s)) == expected


def test_a_failure_by_a_fault_is_not_its_own_also_if_the_job_failed_before() -> None:
    recorded = failed(10, back_s=15)
    fault(recorded, 20, 22).at(25, Action.JOB_FAILING, job="j")
    assert since_s(recorded) is None
    recorded.at(30, Action.JOB_RUNNING, job="j").at(60, Action.JOB_FAILING, job="j")
    assert since_s(recorded) == 60


def test_a_checkpoint_must_have_completed_since_the_fault_was_over() -> None:
    """Of a job that completes checkpoints: one that hangs since the fault may end the job."""

    def failed_after(triggered_s: float, completed_s: float) -> Story:
        recorded = fault(Story().checkpoint(1, 10, 11), 20, 30)
        recorded.checkpoint(2, triggered_s, completed_s)
        return recorded.at(90, Action.JOB_FAILING, job="j")

    assert since_s(failed_after(29, 60)) is None
    assert since_s(failed_after(30, 60.1)) is None
    assert since_s(failed_after(30, 60)) == 90


def test_an_executor_lost_by_itself_is_a_failure_that_no_fault_explains() -> None:
    recorded = fault(Story(), 20, 30).at(90, Action.EXECUTOR_LOST, job="j", executor="1")
    assert unattributed_failure_ns(recorded.history(), 0) == 90e9
    assert since_s(recorded) is None, "it does not stop the job"


def test_the_message_has_the_moment_in_seconds() -> None:
    assert down_message(1_260_000_000) == (
        "the job had failed by itself at 1.3 s and did not run when the fault was called"
    )


def test_a_failure_at_the_very_moment_is_of_the_fault_that_is_called() -> None:
    assert since_s(failed(CALLED_S, back_s=120)) is None
    assert since_s(failed(90, CALLED_S, back_s=120)) == 90


def test_a_checkpoint_that_completes_with_the_failure_was_not_before_it() -> None:
    """A job without any completed checkpoint before its failure need not complete one since the
    heal."""
    recorded = fault(Story(), 10, 20).at(50, Action.JOB_FAILING, job="j")
    recorded.at(50, Action.CHECKPOINT_COMPLETED, checkpoint=1)
    assert unattributed_failure_ns(recorded.history(), 0) == 50e9
