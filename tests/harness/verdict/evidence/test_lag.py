"""When the lag of micro-batches is normal again, by the lows and highs of its sawtooth."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from streamquake.harness.verdict.evidence.lag import lag_normal_s, percentile
from streamquake.reports.record.event import MICRO_BATCH, Action
from streamquake.reports.record.metrics import Metrics
from tests.harness.histories import Story

EFFECT_S = 20.0
END_S = 80
CALM = {4: 40_000, 12: 8_000, 15: 3_000, 18: 3_200}
"""Commit -> the lag after it: a slow first batch, one with the backlog of the first, usual ones."""


def normal_s(
    folder: Path, commits: dict[int, int], *, per_s: int = 1_000, load_ends_s: float = END_S
) -> float | None:
    """The result for these commits; the lag grows in between while there is load."""
    story, metrics = Story(), Metrics(folder / "metrics.parquet")
    story.at(1, Action.CHECKPOINT_COMPLETED, checkpoint=0, type=MICRO_BATCH, input_rows=0)
    metrics.add(2 * 10**9, "lag", "input", 90_000)  # before the first batch with records
    for number, (begin_s, end_s) in enumerate(pairwise([*commits, END_S]), 1):
        recorded = {"checkpoint": number, "type": MICRO_BATCH, "input_rows": 1}
        story.at(begin_s, Action.CHECKPOINT_COMPLETED, **recorded)
        for at_s in range(begin_s, end_s):
            grown = per_s * max(0, min(at_s, load_ends_s) - begin_s)
            metrics.add(int((at_s + 0.5) * 1e9), "lag", "input", commits[begin_s] + grown)
    metrics.flush()
    return lag_normal_s(story.history(), folder / "metrics.parquet", EFFECT_S)


@pytest.mark.parametrize(
    ("afterwards", "after_s"),
    [
        ({21: 3_000, 24: 3_100, **dict.fromkeys(range(27, END_S, 3), 3000)}, 1.0),
        ({50: 30_000, 58: 19_000, **dict.fromkeys(range(62, END_S, 3), 3500)}, 42.0),
        # A second pause: a usual lowest lag, and then no commit for long.
        ({21: 3_000, **dict.fromkeys(range(51, END_S, 3), 3000)}, 31.0),
        # One and a half times the longest batch before, and twice that as the highest lag.
        ({21: 12_000, **dict.fromkeys(range(34, END_S, 3), 3000)}, 1.0),
        ({21: 12_001, **dict.fromkeys(range(24, END_S, 3), 3000)}, 4.0),
        (dict.fromkeys(range(30, END_S, 10), 14000), None),
        ({}, None),
    ],
)
def test_lag_is_normal_from_the_first_commit_after_which_all_intervals_are_usual(
    tmp_path: Path, afterwards: dict[int, int], after_s: float | None
) -> None:
    """The backlog of the first batches, as large as a fault's, is not usual."""
    assert normal_s(tmp_path, CALM | afterwards) == after_s


def test_without_load_lag_is_normal_at_the_next_commit(tmp_path: Path) -> None:
    """The waiting records do not grow, and none is read."""
    assert normal_s(tmp_path, CALM | {60: 2_000, 62: 0}, load_ends_s=21) == 40.0


def test_with_a_single_batch_before_the_fault_its_lowest_lag_is_usual(tmp_path: Path) -> None:
    later = {28: 10_000, **dict.fromkeys(range(35, END_S, 3), 3000)}
    assert normal_s(tmp_path, {12: 8_000} | later) == 15.0


def test_without_a_batch_or_a_sample_before_the_fault_the_lag_is_unknown(tmp_path: Path) -> None:
    assert normal_s(tmp_path, {30: 3_000, 33: 3_000}) is None
    assert lag_normal_s(Story().history(), tmp_path / "none", EFFECT_S) is None


def test_of_two_batches_before_the_fault_the_second_is_usual(tmp_path: Path) -> None:
    afterwards = {21: 13_000, **dict.fromkeys(range(24, END_S, 3), 3000)}
    assert normal_s(tmp_path, {4: 40_000, 12: 8_000} | afterwards) == 4.0


@pytest.mark.parametrize(
    ("after", "after_s"),
    [
        ({20: 39, 25: 1}, 0.0),
        ({20: 40, 21: 39, 22: 40, 23: 39, 24: 1}, 3.0),
        ({20: 40, 21: 1}, 1.0),
        ({21: 40}, None),
        ({}, None),
    ],
)
def test_with_checkpoints_lag_is_normal_once_it_stays_low(
    tmp_path: Path, after: dict[int, int], after_s: float | None
) -> None:
    """Before the fault the lag was 1 to 40; its 95th percentile is 39."""
    metrics = Metrics(tmp_path / "metrics.parquet")
    for change in range(40):
        metrics.add(change * 10**9 // 2, "lag", "input", change + 1)
    for at_s, value in after.items():
        metrics.add(at_s * 10**9, "lag", "input", value)
    metrics.flush()
    history = Story().at(30, Action.CHECKPOINT_COMPLETED, checkpoint=1).history()
    assert lag_normal_s(history, tmp_path / "metrics.parquet", EFFECT_S) == after_s


def test_without_samples_before_the_fault_the_usual_lag_is_unknown(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.parquet")
    metrics.add(25 * 10**9, "lag", "input", 1)
    metrics.flush()
    assert lag_normal_s(Story().history(), tmp_path / "metrics.parquet", EFFECT_S) is None


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.7, 3), (1.0, 3)])
def test_a_percentile_is_one_of_the_values(share: float, value: int) -> None:
    assert percentile([3, 1, 2], share) == value
