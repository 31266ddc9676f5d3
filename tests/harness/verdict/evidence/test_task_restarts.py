"""Whether a subtask survived or restarted: which evidence proves a restart, and which does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamquake.harness.verdict.evidence.task_restarts import (
    SubtaskHistory,
    restarts_of_subtasks,
    survivors_unsampled,
)
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Samples
from tests.harness.histories import Story

AFTER_NS = 20 * 10**9
STARTED_MS = 1_000_000


def changed(reported: Story, at_s: float, **value: Any) -> Story:
    known = {
        "vertex": "c",
        "vertex_name": "Count",
        "subtask": 0,
        "attempt": 0,
        "node": "tm-1",
        "state": "RUNNING",
        "start_ms": STARTED_MS,
    }
    return reported.at(at_s, Action.TASK_CHANGED, **{**known, **value})


def running(*samples: tuple[float, float]) -> dict[str, Samples]:
    at_s, value = zip(*samples, strict=True)
    return {"Count/0": Samples(at_s=np.array(at_s), value=np.array(value))}


def subtask_history(reported: Story, samples: dict[str, Samples] | None = None) -> SubtaskHistory:
    return restarts_of_subtasks(reported.history(), AFTER_NS, samples)["c", 0]


@pytest.mark.parametrize(
    ("later", "restarts"),
    [
        ([{}], 0),
        ([{"start_ms": STARTED_MS + 1}], 1),
        ([{"start_ms": -1}], 0),
        ([{"start_ms": None}, {"start_ms": 1}], 1),
        ([{"attempt": 1, "start_ms": -1}, {"attempt": 1, "start_ms": STARTED_MS + 9}], 1),
        ([{"attempt": 1, "start_ms": 0}, {"attempt": 1, "start_ms": STARTED_MS + 9}], 1),
        ([{"start_ms": 0}, {"start_ms": STARTED_MS}], 0),
        ([{"start_ms": 0}, {"start_ms": STARTED_MS + 9}], 1),
        ([{"attempt": 1, "start_ms": 2}, {"attempt": 0, "start_ms": 3}, {"start_ms": 4}], 3),
    ],
)
def test_attempts_differ_in_their_number_or_their_start_time(
    later: list[dict[str, Any]], restarts: int
) -> None:
    recorded = changed(Story(), 2)
    for change, value in enumerate(later):
        changed(recorded, 21 + change, **value)
    found = subtask_history(recorded)
    assert (found.restarts, found.restarted) == (restarts, restarts > 0)


def test_an_event_at_the_moment_counts_as_before_it() -> None:
    assert subtask_history(changed(changed(Story(), 2), 20, attempt=1)).restarts == 0


def test_a_start_time_after_an_unknown_one_is_no_restart() -> None:
    assert subtask_history(changed(changed(Story(), 2, start_ms=0), 21)).restarts == 0


GOES_ON = [(at_s, at_s * 1000.0) for at_s in (18.0, 20.0, 21.0, 22.0, 23.0, 24.0)]


@pytest.mark.parametrize(
    ("samples", "sign"),
    [
        (GOES_ON, None),
        ([*GOES_ON[:2], (21.0, 20_000.0), (23.0, 22_000.0)], None),
        ([*GOES_ON[:3], (22.0, 20_999.0), (24.0, 24_000.0)], "duration fell"),
        ([(at, value if at <= 20 else value - 19_000) for at, value in GOES_ON], "duration fell"),
        ([(20.0, 1000.0), (28.0, 7000.0)], None),
        ([(20.0, 1000.0), (28.0, 6999.0)], "duration fell"),
        ([(at, value if at <= 20 or at > 23 else value - 900) for at, value in GOES_ON], None),
        ([(20.0, 20_000.0), (30.0, 27_000.0)], None),
        ([(20.0, 20_000.0), (23.0, 20_500.0), (26.0, 25_000.0)], None),
        (
            [*GOES_ON[:2], (30.0, 24_000.0), (31.0, 25_000.0), (32.0, 26_000.0), (33.0, 32_000.0)],
            None,
        ),
    ],
)
def test_a_running_time_that_falls_or_lags_shows_another_attempt(
    samples: list[tuple[float, float]], sign: str | None
) -> None:
    """A single sample may be late; an unchanged time has not fallen; a task that has been running
    since before the moment was not started after it."""
    found = subtask_history(changed(Story(), 2), running(*samples))
    assert (found.sign, found.watched) == (sign, True)
    before = [value for at, value in samples if at <= 20][-1]
    assert (found.before_ms, found.after_ms) == (before, samples[-1][1])


@pytest.mark.parametrize("samples", [GOES_ON[:2], GOES_ON[2:]])
def test_samples_only_before_or_only_after_prove_nothing(
    samples: list[tuple[float, float]],
) -> None:
    assert not subtask_history(changed(Story(), 2), running(*samples)).watched


def test_one_sample_before_and_one_after_are_enough() -> None:
    assert subtask_history(changed(Story(), 2), running(GOES_ON[1], GOES_ON[2])).watched


UNTIL_NS = 26 * 10**9


def cut_off(reported: Story, *samples: tuple[float, float]) -> SubtaskHistory:
    """The history cut off at 26 s."""
    return restarts_of_subtasks(reported.history(), AFTER_NS, running(*samples), UNTIL_NS)["c", 0]


YOUNG = [(20.0, 1000.0), (24.0, 1200.0), (25.0, 2300.0)]
"""Of an attempt from 19 s, recorded 3.8 s late; or of one from 22.7 s."""


@pytest.mark.parametrize(
    ("later", "sign", "unclear"),
    [
        ([], None, True),
        ([(27.0, 100.0)], None, True),
        ([(28.0, 9000.0)], None, False),
        ([(28.0, 5300.0), (29.0, 6300.0)], "duration fell", False),
    ],
)
def test_samples_after_a_cut_history_show_the_attempt(
    later: list[tuple[float, float]], sign: str | None, unclear: bool
) -> None:
    found = cut_off(changed(Story(), 2), *YOUNG, *later)
    assert (found.sign, found.unclear) == (sign, unclear)
    assert bool(survivors_unsampled([found], running(*YOUNG), AFTER_NS)) is unclear


def test_a_sample_after_a_cut_history_proves_a_survivor() -> None:
    alone = running((18.0, 18_000.0))
    (went_on, other) = (
        cut_off(changed(Story(), 2), (18.0, 18_000.0), (27.0, now)) for now in (27_000.0, 500.0)
    )
    assert survivors_unsampled([went_on, other], alone, AFTER_NS) == (other,)


def test_a_sample_from_before_the_attempt_belongs_to_another_attempt() -> None:
    recorded = changed(Story(), 19, attempt=1)
    found = subtask_history(
        recorded, running((18.0, 17_000.0), (20.0, 18_500.0), (22.0, 3500.0), (23.0, 4500.0))
    )
    assert found.sign is None


def test_samples_do_not_distinguish_two_vertices_of_one_name() -> None:
    recorded = changed(changed(Story(), 2), 2, vertex="d")
    assert not subtask_history(recorded, running(*GOES_ON)).watched


@pytest.mark.parametrize(
    ("samples", "unsampled"),
    [
        ([], False),
        ([(18.0, 1.0)], True),
        ([(20.0, 1.0)], True),
        ([(20.5, 1.0)], False),
        ([(20.5, float("nan")), (18.0, 1.0)], True),
    ],
)
def test_a_survivor_whose_samples_ended_by_then_may_have_restarted(
    samples: list[tuple[float, float]], unsampled: bool
) -> None:
    """Its last event is of 19 s, so that samples until 21 s may be of the attempt before."""
    empty = {"Count/0": Samples(at_s=np.array([]), value=np.array([]))}
    recorded = running(*samples) if samples else empty
    found = subtask_history(changed(Story(), 19), recorded)
    assert not found.watched
    assert bool(survivors_unsampled([found], recorded, AFTER_NS)) == unsampled


@pytest.mark.parametrize(
    ("value_ms", "unclear"), [(1_000.0, True), (3_000.0, False), (3_001.0, False), (2_999.0, True)]
)
def test_a_task_that_was_sampled_only_since_may_be_younger_than_the_moment(
    value_ms: float, unclear: bool
) -> None:
    """Sampled at 25 s: with 3 s of running time it began at 22 s, which a late answer explains."""
    found = subtask_history(changed(Story(), 2), running((25.0, value_ms)))
    assert (found.unclear, found.watched, found.sign) == (unclear, False, None)


def test_an_unchanged_running_time_has_not_fallen() -> None:
    """The samples after the cut are of the same attempt until the time falls."""
    young = [(20.0, 1000.0), (24.0, 1200.0), (25.0, 2300.0)]
    for later, unclear in (
        ([(27.0, 2300.0)], False),
        ([(27.0, 2299.0)], True),
        ([(27.0, 4300.0), (28.0, 5300.0), (29.0, 10.0)], False),
    ):
        found = cut_off(changed(Story(), 2), *young, *later)
        assert found.unclear == unclear, later


@pytest.mark.parametrize(("first_s", "counts"), [(4.0, False), (4.001, True)])
def test_a_sample_within_two_seconds_of_its_attempt_may_be_of_the_one_before(
    first_s: float, counts: bool
) -> None:
    found = subtask_history(changed(Story(), 2), running((first_s, 9_000.0), (25.0, 1000.0)))
    assert (found.sign == "duration fell") == counts


def test_a_start_time_of_one_millisecond_is_known() -> None:
    recorded = changed(Story(), 2, start_ms=1)
    changed(recorded, 21, start_ms=2)
    assert subtask_history(recorded).restarts == 1
    recorded = changed(Story(), 2, start_ms=5)
    for at_s, start_ms in ((21, 0), (22, 1), (23, 0), (24, 1)):
        changed(recorded, at_s, start_ms=start_ms)
    assert subtask_history(recorded).restarts == 1


@pytest.mark.parametrize(
    ("states", "set_back"),
    [
        (["CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"], None),
        (["RUNNING", "CANCELING", "CANCELED"], None),
        (["RUNNING", "RUNNING"], None),
        (["RUNNING", "OTHER", "RUNNING"], None),
        (["FAILED", "RUNNING"], ("FAILED", "RUNNING")),
        (["RUNNING", "INITIALIZING", "RUNNING"], ("RUNNING", "INITIALIZING")),
        (["FINISHED", "RUNNING"], ("FINISHED", "RUNNING")),
    ],
)
def test_a_state_does_not_go_back_in_one_attempt(
    states: list[str], set_back: tuple[str, str] | None
) -> None:
    recorded = changed(Story(), 2, state=states[0])
    for number, state in enumerate(states[1:]):
        changed(recorded, 21 + number, state=state)
    found = subtask_history(recorded)
    assert (found.set_back, found.restarts) == (set_back, 0)


def test_the_states_of_another_attempt_begin_anew() -> None:
    recorded = changed(Story(), 2, state="FAILED")
    changed(recorded, 21, state="CREATED", attempt=1)
    assert subtask_history(recorded).set_back is None


@pytest.mark.parametrize(("after_s", "unsampled"), [(24.9, False), (25.0, True), (27.0, True)])
def test_a_survivor_is_watched_until_its_last_sample(after_s: float, unsampled: bool) -> None:
    recorded = running((18.0, 16_000.0), (22.0, 20_000.0), (25.0, 23_000.0))
    found = subtask_history(changed(Story(), 2), recorded)
    assert found.watched
    assert bool(survivors_unsampled([found], recorded, int(after_s * 1e9))) == unsampled
