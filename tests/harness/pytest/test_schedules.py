"""The strategy of Hypothesis over schedules: valid ones, each another one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.validation import broken_fault_rules
from streamquake.harness.pytest.schedules import schedules
from streamquake.topologies.problems import BadInput

pytestmark = pytest.mark.slow

QUICKSTART = load_experiment("quickstart", seed=7)


def drawn_by(strategy: SearchStrategy[tuple[Step, ...]], count: int) -> list[tuple[Step, ...]]:
    """The first schedules that Hypothesis draws."""
    drawn: list[tuple[Step, ...]] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schedule=strategy)
    def draw(schedule: tuple[Step, ...]) -> None:
        drawn.append(schedule)

    draw()
    return drawn


def test_drawn_schedules_are_valid_and_differ() -> None:
    drawn = drawn_by(schedules(QUICKSTART, without=("kill",)), 40)

    assert len({repr(schedule) for schedule in drawn}) >= 39
    for schedule in drawn:
        assert schedule
        assert broken_fault_rules(QUICKSTART.model_copy(update={"faults": schedule})) == []
        assert all(step.fault != "kill" for step in schedule)


def test_the_first_schedule_is_that_of_the_seed() -> None:
    other = QUICKSTART.model_copy(update={"seed": 8})

    assert drawn_by(schedules(QUICKSTART), 1) == drawn_by(schedules(QUICKSTART), 1)
    assert drawn_by(schedules(QUICKSTART), 1) != drawn_by(schedules(other), 1)


@pytest.mark.parametrize(
    ("request_of", "message"),
    [
        ({"steps": -1}, "schedules: steps: expected a number of at least 1, got -1"),
        ({"without": "kill"}, 'schedules: without: expected a list, got "kill"'),
        ({"within_s": float("nan")}, "schedules: within_s: expected a finite number of seconds"),
    ],
)
def test_a_value_that_no_document_can_have_is_bad_input(
    request_of: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as error:
        schedules(QUICKSTART, **request_of)
    assert str(error.value).startswith(message)


def test_an_impossible_request_fails_where_it_is_written() -> None:
    with pytest.raises(LookupError, match="no profile is called"):
        schedules(QUICKSTART, profile="swam")
