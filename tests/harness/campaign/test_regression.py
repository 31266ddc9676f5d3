"""What changed against a baseline, as sentences and as an exit status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.harness.campaign.regression import (
    baseline_condition,
    changes_against,
    is_regression,
    sentences,
)
from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.store.results_store import ResultsStore
from streamquake.reports.store.stored_run import StoredRun
from streamquake.topologies.problems import BadInput
from tests.reports.stored_runs import VERSIONS, judged_run, stored

NEW = {**VERSIONS, "flink": "2.3"}
IMAGES = [{"flink:2.2.1": "sha256:1"}, {"flink:2.2.1": "sha256:2bad00"}]


def runs(
    out: Path,
    before: Sequence[float],
    now: Sequence[float],
    *,
    failed_now: int = 0,
    experiment: str = "a",
) -> tuple[list[StoredRun], list[StoredRun]]:
    """The runs of both versions, each with its time in seconds."""
    store = ResultsStore(out)
    first = len(store.runs())
    for number, took_s in enumerate((*before, *now), first):
        is_new = number >= first + len(before)
        failed = number >= first + len(before) + len(now) - failed_now
        folder, results = judged_run(
            out,
            number,
            experiment=experiment,
            outcome=Outcome.VIOLATED if failed else Outcome.HELD,
            took_s=took_s,
            versions=NEW if is_new else VERSIONS,
            image_ids=IMAGES[is_new],
        )
        store.add(folder, results)
    return store.runs(where=baseline_condition("flink=2.2.1")), store.runs()


FAST = [10.0, 10.5, 9.5, 10.2, 9.8, 10.1]
SLOW = [12.0, 12.6, 11.4, 12.2, 11.8, 12.1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("flink=2.2.1", range(6)),
        ("flink=2.3", range(6, 12)),
        ("streamquake=1.0", range(12)),
        ("program=p2", []),
        ("2026-01-01", range(12)),
        ("2026-01-02", []),
        ("sha256:2bad00", range(6, 12)),
        ("sha256:ffffff", []),
    ],
)
def test_a_baseline_is_a_day_a_version_or_an_image(
    tmp_path: Path, text: str, found: Sequence[int]
) -> None:
    _, everything = runs(tmp_path, FAST, SLOW)
    baseline = ResultsStore(tmp_path).runs(where=baseline_condition(text))
    assert baseline == [everything[number] for number in found]


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01", "9999-12-31", "flink=", "a=b'c", "sha256:xyz", "sha256:2bad"],
)
def test_another_baseline_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="--against: expected a day such as 2026-11-20"):
        baseline_condition(text)


def test_a_slowdown_is_a_regression_with_its_size(tmp_path: Path) -> None:
    changes = changes_against(*runs(tmp_path, FAST, SLOW), ["recovery.longest_s"])
    ((_, rate, rate_text), (name, figure, text)) = sentences(changes)
    assert (name, figure) == ("a", "recovery.longest_s")
    assert text.startswith("slower by 20% (15% to 2")
    assert text.endswith("10.05 → 12.05 (6 runs before, 6 now)")
    assert rate == "as expected"
    assert rate_text == "no change seen: 6 of 6 (61% to 100%) before, 6 of 6 (61% to 100%) now"
    assert is_regression(changes["a"])


def test_a_speed_up_is_a_change_but_no_regression(tmp_path: Path) -> None:
    changes = changes_against(*runs(tmp_path, SLOW, FAST), ["recovery.longest_s"])
    assert [text.partition(" ")[0] for _, _, text in sentences(changes)] == ["no", "faster"]
    assert not is_regression(changes["a"])


def test_an_outcome_that_became_rarer_is_a_regression(tmp_path: Path) -> None:
    changes = changes_against(*runs(tmp_path, FAST, FAST, failed_now=6), ["recovery.longest_s"])
    first, second = (text for _, _, text in sentences(changes))
    assert first == "less often: 6 of 6 (61% to 100%) before, 0 of 6 (0% to 39%) now"
    assert second.startswith("no change seen; ")
    assert is_regression(changes["a"])


def test_without_a_change_nothing_is_a_regression(tmp_path: Path) -> None:
    changes = changes_against(*runs(tmp_path, FAST, FAST[::-1]))
    assert not is_regression(changes["a"])
    figures = {figure for _, figure, _ in sentences(changes)}
    assert figures == {"as expected", "recovery.longest_s", "recovery.restarted_s"}, "only times"


def test_experiments_of_one_group_are_left_out(tmp_path: Path) -> None:
    runs(tmp_path, FAST, [], experiment="old")
    runs(tmp_path, [], FAST, experiment="new")
    baseline, everything = runs(tmp_path, FAST, SLOW)
    assert [*changes_against(baseline, everything)] == ["a"]


@pytest.mark.parametrize(
    ("before", "now", "status", "word"),
    [(FAST, SLOW, 1, "slower by 20%"), (FAST, FAST, 0, "no change seen"), (FAST, [], 3, "")],
)
def test_the_command_shows_changes_and_fails_for_a_regression(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    before: Sequence[float],
    now: Sequence[float],
    status: int,
    word: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    runs(tmp_path, before, now)
    argv = ["results", "--out", str(tmp_path), "--against", "flink=2.2.1"]
    argv += ["--figure", "recovery.longest_s"]

    assert guarded(program, argv) == status
    captured = capsys.readouterr()
    assert word in captured.out
    assert ("no experiment has runs both in the baseline" in captured.err) == (status == 3)

    assert guarded(program, [*argv, "--json"]) == status
    assert [*json.loads(capsys.readouterr().out)] == ([] if status == 3 else ["a"])


def stored_runs(mark: str, figure: str, values: Sequence[float | None]) -> list[StoredRun]:
    """Runs with a figure, where it was reached, and another one of the same check."""
    check = figure.partition(".")[0]
    return [
        stored(
            "a",
            run_id=f"{mark}{number}",
            figures={f"{check}.faults": 1.0} | ({} if value is None else {figure: value}),
        )
        for number, value in enumerate(values)
    ]


def compared(
    figure: str, before: Sequence[float | None], now: Sequence[float | None]
) -> tuple[bool, str]:
    """Whether it is a regression, and the sentence on the figure; empty where it is not a time."""
    changes = changes_against(stored_runs("b", figure, before), stored_runs("n", figure, now))
    texts = {name: text for _, name, text in sentences(changes)}
    return is_regression(changes["a"]), texts.get(figure, "")


def test_a_time_that_was_zero_or_is_never_reached_is_a_regression() -> None:
    assert compared("continuity.gap_max_ms", [0.0] * 8, [50_000.0] * 8)[0]
    regression, text = compared("recovery.restored_s", FAST, [None] * 6)
    assert regression
    assert text.startswith("longer, 10.05 → never")
    assert not compared("recovery.restored_s", [None] * 6, FAST)[0]


def test_a_figure_of_a_check_that_is_new_is_not_compared() -> None:
    before = [stored("a", run_id=f"b{number}", figures={}) for number in range(6)]
    now = stored_runs("n", "latency.p50_ms", FAST)
    assert [name for _, name, _ in sentences(changes_against(before, now))] == ["as expected"]


def test_a_rate_and_the_duration_of_a_run_are_no_times() -> None:
    assert compared("throughput.usual_per_s", FAST, SLOW) == (False, "")
    assert compared("run.elapsed_s", FAST, SLOW) == (False, "")


def on(topology: str, name: str, figures: Sequence[float]) -> list[StoredRun]:
    found = stored_runs(name, "recovery.longest_s", figures)
    return [replace(run, topology=topology) for run in found]


def test_only_runs_on_the_same_topology_are_compared() -> None:
    """An experiment may also have runs on another engine, by `compare`."""
    spark_before, spark_now = [20.0, 20.5] * 10, [21.0, 20.2] * 3
    before = on("flink", "b", FAST) + on("spark", "s", spark_before)
    now = on("flink", "n", FAST) + on("spark", "t", spark_now)
    changes = changes_against(before, now)
    assert [*changes] == ["a on flink", "a on spark"]
    assert not any(map(is_regression, changes.values()))
    slower = changes_against(before, on("flink", "n", SLOW))
    assert [*slower] == ["a on flink"]
    assert is_regression(slower["a on flink"])


def test_undecided_runs_are_no_failures() -> None:
    before = stored_runs("b", "recovery.longest_s", FAST)
    now = [replace(run, as_expected=None) for run in stored_runs("n", "recovery.longest_s", FAST)]
    changes = changes_against(before, now)
    assert not is_regression(changes["a"])
    assert changes["a"].rate.finding == "too few runs"


def test_the_page_does_not_hide_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(tmp_path, FAST, SLOW)
    page = tmp_path / "trend.html"
    argv = ["results", "--out", str(tmp_path), "--against", "flink=2.2.1", "--page", str(page)]
    assert guarded(program, argv) == 1
    assert page.exists()
    assert str(page) in capsys.readouterr().out
