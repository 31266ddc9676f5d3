"""What tasks spend their time on, from counters that are brought up to date now and then."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.cluster.engines.flink.load import TaskLoad

FoundResource = dict[tuple[str, str], float]


def task(subtask: int, busy: object, pressed: int, idle: int, **more: object) -> dict[str, Any]:
    metrics = {
        "accumulated-busy-time": busy,
        "accumulated-backpressured-time": pressed,
        "accumulated-idle-time": idle,
    }
    return {"subtask": subtask, "attempt": 0, "status": "RUNNING", "metrics": metrics, **more}


class ObservationWindow:
    """A load that is looked at, with what each look told."""

    def __init__(self) -> None:
        self._found: FoundResource = {}
        self._load = TaskLoad(lambda series, where, value: self._report(series, where, value))

    def _report(self, series: str, where: str, value: float) -> None:
        self._found[series, where] = value

    def poll(self, *tasks: dict[str, Any]) -> FoundResource:
        self._found = {}
        self._load.poll([{"id": "v", "name": "V", "subtasks": list(tasks)}])
        return self._found


def test_shares_are_differences_and_stay_known_until_the_counters_move() -> None:
    watched = ObservationWindow()
    assert watched.poll(task(0, 0, 0, 5000), task(1, 0, 0, 5000)) == {}
    found = watched.poll(task(0, 1000, 4000, 5000), task(1, 5000, 0, 5000))
    assert found["back_pressured_ms_per_s", "V"] == pytest.approx(400)
    assert found["back_pressured_ms_per_s_max", "V"] == pytest.approx(800)
    assert found["busy_ms_per_s_max", "V"] == pytest.approx(1000)
    assert watched.poll(task(0, 1000, 4000, 5000), task(1, 5000, 0, 5000)) == found
    after = watched.poll(task(0, 1000, 4000, 10_000), task(1, 10_000, 0, 5000))
    assert after["back_pressured_ms_per_s_max", "V"] == 0
    assert after["idle_ms_per_s_max", "V"] == pytest.approx(1000)


def test_a_counter_that_was_corrected_makes_no_share_above_a_second() -> None:
    watched = ObservationWindow()
    watched.poll(task(0, 0, 0, 5000))
    found = watched.poll(task(0, 0, 5000, 4800))
    assert found["back_pressured_ms_per_s_max", "V"] == 1000
    assert found["idle_ms_per_s_max", "V"] == 0


def test_another_attempt_begins_anew() -> None:
    watched = ObservationWindow()
    watched.poll(task(0, 0, 0, 5000))
    assert watched.poll(task(0, 0, 5000, 5000))["back_pressured_ms_per_s", "V"] == 1000
    assert watched.poll(task(0, 9000, 0, 9000, attempt=1)) == {}
    assert watched.poll(task(0, 9000, 0, 14_000, attempt=1))["idle_ms_per_s", "V"] == 1000
    assert watched.poll(task(0, 0, 0, 100, attempt=1)) == {}


def test_a_task_with_unknown_load_or_not_running_is_not_recorded() -> None:
    watched = ObservationWindow()
    watched.poll(task(0, "NaN", 0, 0), task(1, 0, 0, 0))
    found = watched.poll(task(0, "NaN", 5000, 0), task(1, 0, 1000, 4000))
    assert found["back_pressured_ms_per_s_max", "V"] == pytest.approx(200)
    assert watched.poll(task(1, 0, 9000, 4000, status="FAILED")) == {}
