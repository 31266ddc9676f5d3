"""The busy, back-pressured and idle shares of tasks, from counters that are updated at
intervals."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.cluster.engines.flink.load import TaskLoad

Samples = dict[tuple[str, str], float]


def task(subtask: int, busy: object, pressed: int, idle: int, **more: object) -> dict[str, Any]:
    metrics = {
        "accumulated-busy-time": busy,
        "accumulated-backpressured-time": pressed,
        "accumulated-idle-time": idle,
    }
    return {"subtask": subtask, "attempt": 0, "status": "RUNNING", "metrics": metrics, **more}


class LoadPoller:
    """Polls the load of tasks; each poll returns its samples."""

    def __init__(self) -> None:
        self._samples: Samples = {}
        self._load = TaskLoad(lambda series, where, value: self._record(series, where, value))

    def _record(self, series: str, where: str, value: float) -> None:
        self._samples[series, where] = value

    def poll(self, *tasks: dict[str, Any]) -> Samples:
        self._samples = {}
        self._load.poll([{"id": "v", "name": "V", "subtasks": list(tasks)}])
        return self._samples


def test_shares_are_differences_and_are_kept_until_the_counters_change() -> None:
    poller = LoadPoller()
    assert poller.poll(task(0, 0, 0, 5000), task(1, 0, 0, 5000)) == {}
    found = poller.poll(task(0, 1000, 4000, 5000), task(1, 5000, 0, 5000))
    assert found["back_pressured_ms_per_s", "V"] == pytest.approx(400)
    assert found["back_pressured_ms_per_s_max", "V"] == pytest.approx(800)
    assert found["busy_ms_per_s_max", "V"] == pytest.approx(1000)
    assert poller.poll(task(0, 1000, 4000, 5000), task(1, 5000, 0, 5000)) == found
    after = poller.poll(task(0, 1000, 4000, 10_000), task(1, 10_000, 0, 5000))
    assert after["back_pressured_ms_per_s_max", "V"] == 0
    assert after["idle_ms_per_s_max", "V"] == pytest.approx(1000)


def test_a_corrected_counter_gives_no_share_above_a_second() -> None:
    poller = LoadPoller()
    poller.poll(task(0, 0, 0, 5000))
    found = poller.poll(task(0, 0, 5000, 4800))
    assert found["back_pressured_ms_per_s_max", "V"] == 1000
    assert found["idle_ms_per_s_max", "V"] == 0


def test_another_attempt_has_no_share_before_its_second_poll() -> None:
    poller = LoadPoller()
    poller.poll(task(0, 0, 0, 5000))
    assert poller.poll(task(0, 0, 5000, 5000))["back_pressured_ms_per_s", "V"] == 1000
    assert poller.poll(task(0, 9000, 0, 9000, attempt=1)) == {}
    assert poller.poll(task(0, 9000, 0, 14_000, attempt=1))["idle_ms_per_s", "V"] == 1000
    assert poller.poll(task(0, 0, 0, 100, attempt=1)) == {}


def test_a_task_with_unknown_load_or_not_running_is_not_recorded() -> None:
    poller = LoadPoller()
    poller.poll(task(0, "NaN", 0, 0), task(1, 0, 0, 0))
    found = poller.poll(task(0, "NaN", 5000, 0), task(1, 0, 1000, 4000))
    assert found["back_pressured_ms_per_s_max", "V"] == pytest.approx(200)
    assert poller.poll(task(1, 0, 9000, 4000, status="FAILED")) == {}
