"""What changed between two groups of runs: planted changes, and none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf

import pytest

from streamquake.harness.campaign.statistics import changes as changes_module
from streamquake.harness.campaign.statistics.changes import (
    Changes,
    FigureChange,
    Group,
    compare,
)
from streamquake.harness.campaign.statistics.ranks import p_of_ranks
from tests.tiers import others_nightly

pytestmark = pytest.mark.slow

FIGURE = "recovery.longest_s"


def group(values: Sequence[float], as_expected: int | None = None) -> Group:
    expected = len(values) if as_expected is None else as_expected
    return Group(decided=len(values), as_expected=expected, figures={FIGURE: values})


def changes(before: Group, now: Group) -> Changes:
    return compare({"a": (before, now)})["a"]


def figure(before: Sequence[float], now: Sequence[float]) -> FigureChange:
    (found,) = changes(group(before), group(now)).figures
    return found


def drawn(seed: int, n: int, median: float = 10.0) -> list[float]:
    draw = random.Random(seed)
    return [median * draw.lognormvariate(0, 0.08) for _ in range(n)]


def test_a_planted_slowdown_is_found_with_its_size() -> None:
    found = figure(drawn(1, 12), drawn(2, 12, median=12.0))
    assert found.finding == "changed"
    assert found.ratio is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.2 < found.high
    assert 1.0 < found.low < found.ratio < found.high < 1.4


def test_without_a_change_it_says_which_one_would_have_been_seen() -> None:
    found = figure(drawn(1, 12), drawn(3, 12))
    assert found.finding == "no change seen"
    assert found.smallest_seen is not None
    assert 0.02 < found.smallest_seen < 0.15


@pytest.mark.parametrize("others", [0, 10])
def test_the_slowdown_that_would_have_been_seen_would_have_been(others: int) -> None:
    """Also where the correction for other tests hides smaller ones."""
    before, now = drawn(1, 12), drawn(3, 12)
    same = (group([*range(1, 13)]), group([*range(1, 13)]))

    def with_slowdown(factor: float) -> FigureChange:
        slower = group([value * factor for value in now])
        every = {"a": (group(before), slower), **{str(n): same for n in range(others)}}
        return compare(every)["a"].figures[0]

    found = with_slowdown(1.0)
    assert found.smallest_seen is not None
    assert found.ratio is not None
    needed = (1 + found.smallest_seen) / found.ratio
    assert with_slowdown(needed).finding == "changed"
    assert with_slowdown(needed / 1.02).finding == "no change seen"
    assert found.smallest_seen < (0.1 if others == 0 else 0.15)


@pytest.mark.parametrize("figures", [[1.0] * 5, [2.0] * 6])
def test_any_change_of_equal_values_would_have_been_seen(figures: list[float]) -> None:
    assert figure(figures, figures).smallest_seen == pytest.approx(0, abs=1e-6)


def test_a_time_that_was_never_reached_tells_no_smallest_slowdown() -> None:
    assert figure([*drawn(1, 11), 99.0], [*drawn(3, 11), inf]).smallest_seen is None


@pytest.mark.parametrize(
    ("before", "now", "finding"),
    [
        (3, 3, "too few runs"),
        (4, 3, "too few runs"),
        (4, 4, "too few runs"),
        (5, 5, "no change seen"),
        (20, 1, "too few runs"),
        (20, 2, "no change seen"),
    ],
)
def test_too_few_runs_prove_neither(before: int, now: int, finding: str) -> None:
    """Of four and four runs even the clearest order has a p-value of 0.029, and there is a test of
    the rate beside it."""
    found = figure([1.0] * before, [1.0] * now)
    assert found.finding == finding
    assert found.p == 1.0
    assert found.ratio in ((None, 1.0) if finding == "too few runs" else (1.0,))


def test_the_clearest_order_of_five_runs_is_a_change() -> None:
    assert figure([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).p == pytest.approx(2 / 252 * 2)
    assert figure([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).finding == "changed"


def test_a_figure_that_was_zero_has_no_ratio() -> None:
    found = figure([0.0] * 6, [3.0] * 6)
    assert (found.finding, found.ratio, found.smallest_seen) == ("changed", None, None)


def test_only_figures_of_both_groups_are_compared() -> None:
    before = Group(decided=5, as_expected=5, figures={"a.x_s": [1.0] * 5, "a.y_s": [1.0] * 5})
    now = Group(decided=5, as_expected=5, figures={"a.y_s": [1.0] * 5, "a.z_s": [], "a.x_s": []})
    assert [each.figure for each in changes(before, now).figures] == ["a.y_s"]


@pytest.mark.parametrize(
    ("before", "now", "finding", "is_worse"),
    [
        ((20, 20), (20, 10), "changed", True),
        ((20, 10), (20, 20), "changed", False),
        ((20, 20), (20, 18), "no change seen", False),
        ((3, 3), (3, 0), "too few runs", False),
        ((1, 1), (18, 0), "too few runs", False),
        ((1, 1), (19, 0), "changed", True),
    ],
)
def test_a_rate_that_fell_is_worse(
    before: tuple[int, int], now: tuple[int, int], finding: str, is_worse: bool
) -> None:
    groups = [Group(decided=n, as_expected=k, figures={}) for n, k in (before, now)]
    found = changes(*groups).rate
    assert (found.finding, found.is_worse) == (finding, is_worse)
    assert (found.before.count, found.now.n) == (before[1], now[0])


def test_tests_are_corrected_for_their_number() -> None:
    """A change that is seen alone may be chance among many."""
    changed = (group([1, 2, 3, 4, 5, 6, 7, 8]), group([4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5]))
    same = (group([*range(8)]), group([*range(8)]))
    alone = compare({"a": changed})["a"].figures[0]
    among = compare({"a": changed, **{str(n): same for n in range(10)}})["a"].figures[0]
    assert (alone.finding, among.finding) == ("changed", "no change seen")
    assert among.p == pytest.approx(alone.p / 2 * 22, rel=0.01)


def test_a_change_that_the_correction_would_always_hide_is_not_denied() -> None:
    """The clearest order of five and five runs is no finding among 22 tests."""
    clear = (group([1, 2, 3, 4, 5]), group([60, 70, 80, 90, 100]))
    alone = compare({"a": clear})["a"].figures[0]
    among = compare({str(n): clear for n in range(11)})["1"].figures[0]
    assert (alone.finding, among.finding) == ("changed", "too few runs")


def test_experiments_with_many_runs_are_tested_beside_those_with_few() -> None:
    few = (group([1, 2, 3, 4, 5]), group([1, 2, 3, 4, 5]))
    many = (group([*range(20)]), group([*range(100, 120)]))
    found = compare({"many": many, **{str(n): few for n in range(40)}})
    assert found["many"].figures[0].finding == "changed"
    assert found["1"].figures[0].finding == "too few runs"


def test_one_run_now_against_many_has_no_interval() -> None:
    found = figure([1000.0 + n for n in range(60)], [5000.0])
    assert (found.finding, found.ratio) == ("too few runs", None), "the rate is tested too"
    found = figure([1000.0 + n for n in range(100)], [5000.0])
    assert (found.finding, found.ratio, found.is_longer) == ("changed", None, True)


def test_a_time_that_is_never_reached_is_longer() -> None:
    found = figure([5.0, 5.1, 5.2, 5.3, 5.4, 5.5], [inf] * 6)
    assert (found.finding, found.ratio, found.is_longer) == ("changed", None, True)


def test_equal_values_of_few_runs_are_tested_exactly() -> None:
    """The normal approximation gives 5e-12 for two values that two of a hundred had before."""
    assert p_of_ranks([1.0] * 98 + [2.0] * 2, [2.0, 2.0], "two-sided") == pytest.approx(
        2 * 6 / 5151, rel=0.2
    )
    assert p_of_ranks([2.0] * 6, [1.5], "greater") == pytest.approx(1 / 7)
    assert p_of_ranks([2.0] * 6, [1.5], "less") == 1.0
    assert p_of_ranks([1.5], [2.0] * 6, "less") == pytest.approx(1 / 7)
    assert p_of_ranks([1.5], [2.0] * 6, "greater") == 1.0
    assert p_of_ranks([1.5], [2.0] * 5 + [1.0], "two-sided") == pytest.approx(4 / 7)
    assert p_of_ranks([2.0] * 3, [1.5, 1.5], "greater") == pytest.approx(1 / 10)
    assert p_of_ranks([1.0], [1.0], "two-sided") == 1.0


@pytest.fixture
def rough_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of few resamples, on which no finding depends."""
    monkeypatch.setattr(changes_module, "RESAMPLES", 10)


@pytest.mark.usefixtures("rough_intervals")
@pytest.mark.parametrize("comparisons", others_nightly([20, 200], always=[20]))
def test_rounded_values_raise_no_false_alarm(comparisons: int) -> None:
    """Two nights against a baseline of a hundred, with one value in fifty a step higher."""
    draw = random.Random(1)

    def rounded(n: int) -> list[float]:
        return [2.0 if draw.random() < 0.02 else 1.0 for _ in range(n)]

    alarms = sum(figure(rounded(100), rounded(2)).finding == "changed" for _ in range(comparisons))
    assert alarms <= 0.05 * comparisons


def test_undecided_runs_alone_are_too_few() -> None:
    before = Group(decided=6, as_expected=6, figures={})
    now = Group(decided=0, as_expected=0, figures={})
    found = changes(before, now).rate
    assert (found.finding, found.is_worse, found.now.n) == ("too few runs", False, 0)


@pytest.mark.usefixtures("rough_intervals")
@pytest.mark.parametrize("nights", others_nightly([20, 300], always=[20]))
def test_without_changes_a_false_alarm_is_rarer_than_the_level(nights: int) -> None:
    """Each night compares five experiments that did not change."""
    alarms = 0
    for night in range(nights):
        found = compare(
            {
                str(n): (
                    group(drawn(night * 100 + n, 6)),
                    group(drawn(night * 100 + 50 + n, 6)),
                )
                for n in range(5)
            }
        )
        alarms += any(f.finding == "changed" for each in found.values() for f in each.figures)
    assert alarms / nights <= 0.05
