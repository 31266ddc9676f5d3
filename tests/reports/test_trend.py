"""The trend page of many nights, with a planted regression and without one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.trend import trend_rows
from streamquake.harness.cli import program
from streamquake.harness.cli.guard import guarded
from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.trend.trend_html import render_trend
from streamquake.reports.trend.trend_row import TrendRow
from tests.reports.made_up_nights import EXPERIMENTS, made_up_nights
from tests.reports.stored_runs import SAMPLE, judged_run
from tests.reports.test_html import HOSTILE, Page

pytestmark = pytest.mark.slow


def rows(nights: int = 90, slowdown: float = 1.3) -> dict[str, TrendRow]:
    return {row.experiment: row for row in trend_rows(list(made_up_nights(nights, slowdown)))}


def test_a_planted_slowdown_is_the_only_regression_and_comes_first(tmp_path: Path) -> None:
    found = rows()
    worse = {name: row.regressions for name, row in found.items() if row.regressions}
    assert [*worse] == ["kill-taskmanager"]
    (sentence,) = worse["kill-taskmanager"]
    assert sentence.startswith("recovery.longest_s: slower by ")

    page = render_trend([*reversed(found.values())], tmp_path / "trend.html", tmp_path).read_text(
        "utf-8"
    )

    titles = re.findall(r"<h3>(\S+)", page)
    assert (titles[0], set(titles)) == ("kill-taskmanager", {*EXPERIMENTS})
    assert "1 of 4 experiments became worse" in page
    assert "360 runs from 2026-08-01 to 2026-10-29" in page


@pytest.mark.parametrize("slowdown", [1.0, 0.7])
def test_without_a_slowdown_nothing_is_a_regression(slowdown: float, tmp_path: Path) -> None:
    found = rows(slowdown=slowdown)
    assert not any(row.regressions for row in found.values())
    page = render_trend([*found.values()], tmp_path / "trend.html", tmp_path).read_text("utf-8")
    assert "0 of 4 experiments became worse" in page


def test_five_nights_are_too_few_to_say(tmp_path: Path) -> None:
    found = rows(nights=5)
    assert not any(row.regressions or row.others for row in found.values())
    render_trend([*found.values()], tmp_path / "trend.html", tmp_path)


def test_a_change_of_software_is_named() -> None:
    changes = list(rows()["slow-sink"].changes)
    assert [(change.started_at[:10], change.text) for change in changes] == [
        ("2026-09-30", "flink 2.2.1 → 2.3.0")
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"streamquake": "0.3.0", "program": "p2"}, "streamquake 0.2.0 → 0.3.0"),
        ({"program": "p2"}, "another build of streamquake"),
        ({"images": {"x": "x:1 sha256:2"}}, "another image"),
        ({"versions": {"spark": "4.1"}}, "spark none → 4.1"),
        ({}, "experiment"),
    ],
)
def test_the_kind_of_a_change_is_named(change: dict[str, object], text: str) -> None:
    before = replace(SAMPLE, key="1", started_at="2026-08-01T00:00:00+00:00")
    after = replace(before, key="2", **change)  # type: ignore[arg-type]
    (row,) = trend_rows([before, after])
    assert [found.text for found in row.changes] == [text]


def test_runs_on_several_topologies_are_rows_of_their_own() -> None:
    other = replace(SAMPLE, topology="spark", run_id="2")
    (alone,) = trend_rows([SAMPLE])
    assert alone.experiment == SAMPLE.experiment
    assert [row.experiment for row in trend_rows([SAMPLE, other])] == [
        f"{SAMPLE.experiment} on {SAMPLE.topology}",
        f"{SAMPLE.experiment} on spark",
    ]


def test_the_figures_to_draw_are_preferred_named_or_vary() -> None:
    def drawn(runs: list[StoredRun], *named: str) -> tuple[str, ...]:
        (row,) = trend_rows(runs, named)
        return tuple(row.figures)

    figures = {"a.x_s": 1.0, "a.same_s": 2.0, "a.count": 3.0, "recovery.longest_s": 5.0}
    first = replace(SAMPLE, figures=figures)
    second = replace(SAMPLE, run_id="2", figures={**figures, "a.x_s": 2.0, "a.count": 4.0})
    assert drawn([first, second]) == ("recovery.longest_s", "a.x_s")
    assert drawn([first, second], "a.count") == ("a.count",)


def test_the_page_loads_nothing_and_escapes_what_a_record_says(tmp_path: Path) -> None:
    run = replace(
        SAMPLE,
        run_id="20260801-010000-0001",
        started_at="2026-08-01T01:00:00+00:00",
        experiment=HOSTILE,
        as_expected=0,
        why=HOSTILE,
        versions={HOSTILE: HOSTILE},
        figures={f"a.{HOSTILE}_s": 1.0, "recovery.longest_s": 2.0},
    )
    page = render_trend(trend_rows([run], [f"a.{HOSTILE}_s"]), tmp_path / "trend.html", tmp_path)
    text = page.read_text("utf-8")
    assert HOSTILE not in text
    Page(text)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)


def test_the_command_writes_the_page_with_links_to_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = judged_run(tmp_path, 0)
    folder.report.write_text("page", "utf-8")
    judged_run(tmp_path, 1)
    page = tmp_path / "pages" / "trend.html"

    argv = ["results", "--out", str(tmp_path), "--page", str(page), "--rebuild"]
    assert guarded(program, argv) == 0

    assert capsys.readouterr().out == f"{page}\n"
    figures: list[Any] = Page(page.read_text("utf-8")).figures()
    links = {each for trace in figures[0]["data"] for each in trace.get("customdata", ())}
    assert links == {f"../{folder.run_id}/report.html", ""}, "the other run has no page"


def test_without_runs_there_is_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "trend.html"
    assert guarded(program, ["results", "--out", str(tmp_path), "--page", str(page)]) == 0
    assert "no such runs" in capsys.readouterr().out
    assert not page.exists()
