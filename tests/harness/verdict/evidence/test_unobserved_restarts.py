"""A subtask that began anew, and whose job has no failure; the engine's clock began 100 s before
the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.verdict.checks.execution import Execution
from streamquake.harness.verdict.evidence.unobserved_restarts import restarted_without_failure
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.model import Topology
from tests.fakes import TOPOLOGY
from tests.harness.histories import Story, case

FAILS = (Action.JOB_FAILING, "failed_ms")
RESTARTS = (Action.JOB_RESTARTING, "restarting_ms")


def message(at_s: float = 30.5) -> str:
    return (
        f"map (0) began anew at {at_s:.1f} s, and no failure of its job is recorded since its "
        "attempt before"
    )


def deployed(
    recorded: Story, at_s: float, attempt: int, *, whole: bool = True, **changed: Any
) -> Story:
    """The subtask is deployed and seen to run a second later, and so is the job where `whole`."""
    about = {"vertex": "v", "vertex_name": "map", "subtask": 0, "attempt": attempt, "node": "tm-1"}
    about |= {"job": "j", "start_ms": int((100 + at_s) * 1000), **changed}
    recorded.at(at_s + 0.5, Action.TASK_CHANGED, **about, state="DEPLOYING")
    recorded.at(at_s + 1, Action.TASK_CHANGED, **about, state="RUNNING")
    return recorded.at(at_s + 1, Action.JOB_RUNNING, job=about["job"]) if whole else recorded


def begun(**changed: Any) -> Story:
    """The subtask was deployed at 10 s."""
    return deployed(Story().at(9, Action.JOB_SUBMITTED, job="j"), 10, 0, **changed)


def failed(
    recorded: Story, at_s: float, event: tuple[Action, str] = FAILS, *, job: str = "j"
) -> Story:
    """A failure that was seen half a second after the engine's stamp."""
    action, stamp = event
    return recorded.at(at_s + 0.5, action, job=job, **{stamp: int((100 + at_s) * 1000)})


def found(recorded: Story, **config: str) -> list[str]:
    flink = TOPOLOGY.services["flink"].model_copy(update={"config": config})
    services = {**TOPOLOGY.services, "flink": flink}
    topology = TOPOLOGY.model_copy(update={"services": services})
    return list(restarted_without_failure(recorded.history(), topology))


def test_a_new_attempt_needs_a_failure() -> None:
    assert found(deployed(begun(), 30, 1)) == [message()]


@pytest.mark.parametrize("event", [FAILS, RESTARTS])
@pytest.mark.parametrize(
    ("failed_s", "explained"),
    [(9.9, False), (10, True), (29.9, True), (30, True), (30.1, False)],
)
def test_one_sign_of_a_failure_is_enough(
    event: tuple[Action, str], failed_s: float, explained: bool
) -> None:
    """By the stamps of the engine's one clock."""
    recorded = deployed(begun(), 30, 1)
    assert found(failed(recorded, failed_s, event)) == ([] if explained else [message()])


def test_each_new_attempt_needs_its_own_failure() -> None:
    recorded = deployed(failed(deployed(failed(begun(), 29), 30, 1), 49), 50, 2)
    assert found(recorded) == []
    assert found(deployed(recorded, 70, 3)) == [message(70.5)]


def test_another_job_manager_counts_attempts_anew() -> None:
    assert found(deployed(begun(), 30, 0)) == [message()]


def test_the_failure_is_of_the_same_job() -> None:
    assert found(deployed(failed(begun(), 29, job="other"), 30, 1)) == [message()]


def test_several_failures_may_be_reported_as_one_until_the_job_ran_again() -> None:
    recorded = deployed(failed(begun(), 29), 35, 1, whole=False)
    assert found(deployed(recorded, 40, 2)) == []


def test_an_attempt_that_was_never_deployed_is_none_between_two() -> None:
    recorded = failed(begun(), 29)
    about = {"vertex": "v", "subtask": 0, "node": "", "job": "j", "state": "SCHEDULED"}
    recorded.at(30, Action.TASK_CHANGED, **about, attempt=1, start_ms=-1)
    assert found(deployed(recorded, 40, 2)) == []


def test_a_job_that_replaces_another_began_by_order() -> None:
    recorded = begun().at(28, Action.JOB_SUBMITTED, job="next")
    assert found(deployed(recorded, 30, 0, job="next")) == []


def test_records_without_stamps_show_nothing() -> None:
    assert found(deployed(begun(), 30, 1, start_ms=None)) == []
    recorded = deployed(begun(), 30, 1).at(32, Action.JOB_FAILING, job="j")
    assert found(recorded) == []


def test_a_clock_that_a_fault_moved_shows_nothing() -> None:
    recorded = deployed(begun(), 30, 1)
    assert found(recorded.at(40, Action.FAULT_CALLED, step=0, fault="clock_skew", target="x")) == []


@pytest.mark.parametrize(
    ("config", "by_itself"),
    [
        ({}, False),
        ({"jobmanager.scheduler": "Default"}, False),
        ({"jobmanager.scheduler": "adaptive"}, True),
        ({"scheduler-mode": "reactive"}, True),
    ],
)
def test_a_scheduler_may_restart_a_job_to_rescale_it(
    config: dict[str, str], by_itself: bool
) -> None:
    assert found(deployed(begun(), 30, 1), **config) == ([] if by_itself else [message()])


def test_of_a_system_that_is_only_used_the_scheduler_is_not_known() -> None:
    topology = Topology.model_validate(
        {
            "name": "used",
            "services": {"flink": {"engine": "flink", "endpoint": "http://flink:8081"}},
        }
    )
    recorded = deployed(begun(), 30, 1).history()
    assert list(restarted_without_failure(recorded, topology)) == []


def test_a_new_attempt_without_a_failure_decides_nothing(tmp_path: Path) -> None:
    result = Execution().check(case(deployed(begun(), 30, 1), tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert message() in [each.detail["reason"] for each in result.findings]
