"""The colours of the charts."""

from __future__ import annotations

from streamquake.reports.render.palette import TASK_STATES, attempt_colour


def test_no_attempt_that_runs_has_the_colour_of_a_failed_one() -> None:
    running = {attempt_colour(attempt) for attempt in range(20)}
    assert running.isdisjoint(TASK_STATES.values())


def test_a_restarted_task_has_another_colour() -> None:
    assert all(attempt_colour(n) != attempt_colour(n + 1) for n in range(20))
