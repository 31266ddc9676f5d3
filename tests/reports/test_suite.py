"""The results of a suite: their JSON, their page, their JUnit, their table."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from streamquake.reports.junit import write_suite_junit
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.run.text import make_console
from streamquake.reports.suite.suite_html import measured, overview, render_suite
from streamquake.reports.suite.suite_markdown import write_markdown
from streamquake.reports.suite.suite_results import (
    ClaimResult,
    RelationResult,
    RowResult,
    Spread,
    SuiteFolder,
    SuiteResults,
)
from streamquake.reports.suite.suite_text import print_suite
from tests.reports.suite_runs import suite_run
from tests.reports.test_html import HOSTILE, Page

HELD, UNDECIDED, VIOLATED = Outcome


def spread(*values: float) -> Spread:
    made = Spread.of(values)
    assert made is not None
    return made


def row(verdict: Outcome | None, name: str = "slow", **fields: object) -> RowResult:
    made = RowResult(
        experiment=name,
        topology="t",
        expected=ExpectedOutcome(),
        outcome=verdict,
        verdict=verdict,
        why="a reason",
        figures={},
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def claim(**fields: object) -> ClaimResult:
    made = ClaimResult(
        claim="it is fast",
        article="the article",
        setting="on",
        note=None,
        control="slow",
        control_figures={"c.took_ms": spread(40, 60, 50), "c.none": None},
        relations=(RelationResult(figure="c.took_ms", outcome=HELD, text="10 is enough"),),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


CLAIMED = row(HELD, "fast", claim=claim(), figures={"c.took_ms": spread(4, 6, 5), "c.none": None})


NOT_HERE = row(
    None,
    "",
    claim=claim(published="11 times", control=None, relations=()),
    planned=0,
    unavailable="no image",
    why="not measured: no image",
)


def suite(*rows: RowResult, **fields: object) -> SuiteResults:
    made = SuiteResults(
        suite_id="1",
        suite="mine",
        description="",
        seed=7,
        ended="completed",
        rows=rows,
        again="streamquake suite mine --seed 7",
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def folder_in(tmp_path: Path) -> SuiteFolder:
    return SuiteFolder.create(tmp_path, "1")


def page_of(results: SuiteResults, tmp_path: Path) -> Page:
    return Page(render_suite(results, folder_in(tmp_path)).read_text("utf-8"))


@pytest.mark.parametrize(
    ("verdicts", "verdict", "counted"),
    [
        ((HELD, HELD), HELD, "2 rows: 2 as expected"),
        ((HELD, None), UNDECIDED, "2 rows: 1 as expected, 1 not run"),
        ((UNDECIDED, VIOLATED), VIOLATED, "2 rows: 1 undecided, 1 not as expected"),
        ((), UNDECIDED, "0 rows: none"),
    ],
)
def test_the_verdict_of_a_suite_is_that_of_its_worst_row(
    verdicts: tuple[Outcome | None, ...], verdict: Outcome, counted: str
) -> None:
    results = suite(*(row(each) for each in verdicts))
    assert (results.verdict, results.counted) == (verdict, counted)


@pytest.mark.parametrize("budget_s", [None, 3600.0])
@pytest.mark.parametrize("ended", ["interrupted", "failed_to_run"])
def test_a_suite_that_did_not_complete_is_not_held(ended: str, budget_s: float | None) -> None:
    """Only a budget that was used up excuses rows that were not run."""
    rows = (row(HELD), row(None))
    assert suite(*rows, ended=ended, budget_s=budget_s).verdict == UNDECIDED
    assert suite(*rows, budget_s=3600.0).verdict == HELD


def test_a_row_that_cannot_be_measured_is_counted_separately_and_does_not_affect_the_verdict() -> (
    None
):
    results = suite(row(HELD), NOT_HERE)
    assert (results.verdict, results.counted) == (HELD, "2 rows: 1 as expected, 1 not measured")
    assert suite(NOT_HERE).verdict == UNDECIDED


def test_a_row_that_cannot_be_measured_is_shown_with_its_reason(tmp_path: Path) -> None:
    results = suite(row(HELD), NOT_HERE)
    document = results.to_json()["rows"][1]
    assert (document["outcome"], document["unavailable"]) == ("not measured", "no image")
    assert (document["published"], document["as_expected"]) == ("11 times", False)
    page = page_of(results, tmp_path / "page")
    for words in ("not measured: no image", "published", "11 times"):
        assert words in page.text
    written = io.StringIO()
    print_suite(results, folder_in(tmp_path / "text"), make_console(written))
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    assert "not measured it is fast" in lines
    assert "it is fast: not measured: no image" in lines
    path = write_suite_junit([], tmp_path / "junit.xml", results)
    (cases,) = JUnitXml.fromfile(str(path))
    assert [[type(result) for result in case.result] for case in cases] == [[], [Skipped]]


def test_a_spread_leaves_out_values_that_were_not_measured() -> None:
    assert Spread.of([None, None]) is None
    made = spread(9, 1, 2)
    assert (made.n, made.median, made.spread) == (3, 2, 8)
    assert Spread.of([3, None]) == spread(3)


def test_the_interval_of_a_median_is_shown_in_place_of_the_range() -> None:
    of_few = spread(1, 2, 9)
    assert measured(of_few, "c.x") == "2 (n 3, 1 … 9)"
    assert "interval" not in of_few.to_json()
    of_many = replace(spread(1, 2, 3, 4, 5, 6, 7, 8, 9), interval=(2, 8))
    assert measured(of_many, "c.x") == "5 (n 9, 95 %: 2 … 8)"
    assert of_many.to_json()["interval"] == [2, 8]


def test_the_json_of_rows_has_stable_keys(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.write_results(suite(CLAIMED, row(None)))
    document = json.loads(folder.results.read_text("utf-8"))
    assert document["schema"] == 1
    first, second = document["rows"]
    for key in ("experiment", "topology", "expected", "outcome", "run", "figures"):
        assert key in first
        assert key in second
    assert first["figures"]["c.took_ms"]["median"] == 5
    assert first["figures"]["c.none"] is None
    assert first["control"]["figures"]["c.took_ms"]["spread"] == 20
    assert (second["outcome"], second["run"]) == ("not run", None)


def test_the_page_is_complete_and_makes_no_request(tmp_path: Path) -> None:
    page = page_of(suite(CLAIMED, row(None), row(VIOLATED, "broken")), tmp_path)
    policy = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert policy
    assert "default-src 'none'" in str(policy[0])
    assert len(page.figures()) == 1
    for words in ("not as expected", "it is fast", "the article", "5 ms (n 3, 4 … 6)", "not run"):
        assert words in page.text
    assert "50 ms (n 3, 40 … 60)" in page.text
    assert page.text.index("5 ms (n 3") < page.text.index("50 ms (n 3")


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    run = suite_run(experiment=HOSTILE, met=VIOLATED, run=HOSTILE, outcome=VIOLATED, why=HOSTILE)
    bad = claim(claim=HOSTILE, setting=HOSTILE, control_figures={HOSTILE: spread(1)})
    hostile = row(VIOLATED, HOSTILE, claim=bad, figures={HOSTILE: spread(1)}, runs=(run,))
    page = page_of(suite(hostile, suite=HOSTILE, again=HOSTILE), tmp_path)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert HOSTILE in page.text


def test_runs_without_a_page_have_no_link(tmp_path: Path) -> None:
    run = suite_run(
        met=UNDECIDED, run=None, ended="failed_to_run", outcome=UNDECIDED, why="no space"
    )
    page = page_of(suite(row(UNDECIDED, runs=(run,))), tmp_path)
    assert not [tag for tag, _ in page.tags if tag == "a"]
    assert "no space" in page.text


def test_junit_has_a_case_for_each_row(tmp_path: Path) -> None:
    rows = [row(verdict, str(verdict)) for verdict in (HELD, UNDECIDED, VIOLATED, None)]
    path = write_suite_junit([], tmp_path / "junit.xml", suite(*rows))
    (cases,) = JUnitXml.fromfile(str(path))
    kinds = {case.name: [type(result) for result in case.result] for case in cases}
    assert kinds == {"held": [], "undecided": [Error], "violated": [Failure], "None": [Skipped]}


def test_the_table_has_the_figures_of_the_claim_and_the_control(tmp_path: Path) -> None:
    written = io.StringIO()
    print_suite(suite(CLAIMED, row(None)), folder_in(tmp_path), make_console(written))
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    assert "c.took_ms 5 ms (n 3, 4 … 6) 50 ms (n 3, 40 … 60)" in lines
    assert "c.none – –" in lines
    assert "10 is enough" in lines  # the bound by which the claim holds
    assert "not run slow" in lines


def test_the_markdown_has_a_table_for_each_claim(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    made_on = ("22 runs of 2026-01-01", "2 processors")
    results = replace(suite(CLAIMED, NOT_HERE, row(HELD, "plain")), conditions=made_on)
    write_markdown(results, folder)
    assert (
        folder.markdown.read_text("utf-8")
        == """\
- 22 runs of 2026-01-01
- 2 processors

|  | row | found | runs |
|---|---|---|---|
| held | it is fast | 10 is enough |  |
| not measured | it is fast |  |  |
| held | plain |  |  |

**it is fast**\x20\x20
on: **held**

|  | took | none |
|---|---|---|
| `fast` | 5 ms (n 3, 4 … 6) | – |
| control `slow` | 50 ms (n 3, 40 … 60) | – |

**it is fast**\x20\x20
published: 11 times\x20\x20
not measured: no image

**plain**\x20\x20
**held**
"""
    )


def test_the_overview_has_a_line_for_each_row(tmp_path: Path) -> None:
    relations = (
        RelationResult(figure="c.a", outcome=HELD, text="a holds"),
        RelationResult(figure="c.b", outcome=UNDECIDED, text="b is too noisy to say"),
    )
    runs = tuple(suite_run(role=role) for role in ("claim", "claim", "control"))
    noisy = row(UNDECIDED, claim=claim(relations=relations), runs=runs)
    measured = row(HELD, "plain", figures={"c.took_ms": spread(5.0), "c.none": None})

    results = replace(suite(noisy, measured), conditions=("2 processors",))
    page = page_of(results, tmp_path)

    lines = [(line.effect, line.runs) for line in overview(results)]
    assert lines == [("b is too noisy to say", "2 + 1"), ("c.took_ms: 5 ms", "")]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    places = [attributes.get("id") for tag, attributes in page.tags if tag == "article"]
    assert links[:2] == ["#row-1", "#row-2"]
    assert places == ["row-1", "row-2"]
    assert "2 processors" in page.text


def test_the_markdown_has_the_outcome_of_a_published_direction(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    claimed = replace(CLAIMED, claim=claim(published="11 times", note="on one machine"))
    write_markdown(suite(claimed), folder)
    message = folder.markdown.read_text("utf-8")
    assert "- 10 is enough: held\n\non one machine.\n" in message


def test_texts_of_a_suite_are_escaped_in_the_markdown(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    hostile = "<script>x</script>\n# title ![p](http://x) a|b\\|c \x1b[31m \u202e"
    texts = claim(claim=hostile, setting=hostile, published=hostile, note=hostile)
    rows = (
        replace(CLAIMED, claim=texts),
        replace(NOT_HERE, unavailable=hostile),
        row(HELD, "plain", figures={f"c.{hostile}": None}),
    )
    write_markdown(suite(*rows), folder)

    message = folder.markdown.read_text("utf-8")

    assert message.count(r"\<script>x\</script> # title !\[p\](http://x) a\|b\\\|c \\x1b\[31m") == 7
    assert not re.search(r"(?<!\\)[<\[]|^#|[\x1b\u202e]", message, re.MULTILINE)


def test_figures_with_the_same_short_name_have_long_names_in_the_markdown(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    figures = {"c.files": spread(4), "c.files_bytes": spread(70), "d.files": None}
    write_markdown(suite(row(HELD, "plain", figures=figures)), folder)
    assert "|  | c files | c files bytes | d files |" in folder.markdown.read_text("utf-8")
