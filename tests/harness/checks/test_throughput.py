"""`throughput` on outputs with stamps: how long nothing came, and the worst and the best second."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.checks.throughput import Throughput
from streamquake.reports.event import Action
from streamquake.reports.outcome import CheckResult, Outcome
from tests.harness.checks.stamped import (
    Out,
    changed,
    judged_case,
    loads,
    outs,
    story,
    struck,
)
from tests.harness.histories import Story


def judged(
    spark: SparkSession, data: Path, came: list[Out], told: Story | None = None,
    facts: dict[str, Any] | None = None, **params: Any,
) -> CheckResult:  # fmt: skip
    case = judged_case(spark, data, came, told, **(facts or {}))
    return Throughput(**{"outage_within_s": 5.0, **params}).check(case)


def silent(since_s: float, until_s: float) -> list[Out]:
    """Nothing comes for a while; what was held back comes at once when it is over."""

    def held_back(out: Out) -> Iterable[Out]:
        return [out._replace(at_s=until_s) if since_s <= out.at_s < until_s else out]

    return changed(held_back)


def test_a_short_outage_is_held_and_told_in_figures(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, silent(10.0, 13.0))

    assert result.outcome == Outcome.HELD
    counts = result.counts
    assert counts["usual_per_s"] == 100
    assert 3.0 <= (counts["outage_s"] or 0) <= 3.02
    # From the strike at 9.9 s on: 300 records came at 13 s, together with those of their second.
    assert (counts["least_share"], counts["peak_share"]) == (0.0, 3.9)
    # Of the seven seconds until 5 s after the heal two were empty, the first had a tenth.
    assert counts["available_share"] == round(5 / 7, 4)
    assert "3.0 s at most, 5 s allowed" in result.summary


def test_a_long_outage_is_violated_with_when_it_began(spark: SparkSession, tmp_path: Path) -> None:
    result = judged(spark, tmp_path, silent(9.0, 15.0))

    assert result.outcome == Outcome.VIOLATED
    finding = result.findings[0]
    assert (finding.what, finding.where) == ("an outage", "totals")
    # It began before the strike: what came last and stayed.
    assert 8.9 < finding.detail["since_s"] < 9.0
    assert 6000 <= finding.detail["gap_ms"] <= 6020


def test_an_output_that_never_comes_back_is_out_until_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    came = [out for out in outs() if out.at_s < 11]
    result = judged(spark, tmp_path / "a", came)
    assert result.outcome == Outcome.VIOLATED
    assert 6.4 < (result.counts["outage_s"] or 0) < 6.6  # until 5 s after the heal

    # That much is allowed, and how much more it would have become nobody knows.
    result = judged(spark, tmp_path / "b", came, outage_within_s=8)
    assert result.outcome == Outcome.UNDECIDED
    assert "it had not come back when the load ended" in result.summary


def test_a_poor_second_is_violated_only_where_it_is_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    came = silent(10.0, 12.5)
    assert judged(spark, tmp_path / "a", came).outcome == Outcome.HELD
    result = judged(spark, tmp_path / "b", came, least_share=0.5)
    assert result.outcome == Outcome.VIOLATED
    assert [finding.what for finding in result.findings] == ["a poor second"]
    assert "0% of the usual 100 records, 50% needed" in result.summary
    assert judged(spark, tmp_path / "c", outs(), least_share=0.5).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("came", "told", "facts", "said"),
    [
        (outs(), loads(Story()), {}, "no fault took effect"),
        (outs(), story(), {"stamped": "create"}, "what the producer said"),
        ([], story(), {}, "nothing came out"),
        ([out for out in outs() if out.at_s > 6], story(), {}, "3 whole seconds before the fault"),
        (silent(2.0, 8.5), story(), {}, "in most seconds before the fault nothing came out"),
        (silent(2.0, 5.5), story(), {}, "before the fault, too, totals stopped for 3.5 s"),
    ],
)
def test_too_little_evidence_is_undecided(
    spark: SparkSession, tmp_path: Path, came: list[Out], told: Story, facts: dict[str, Any],
    said: str,
) -> None:  # fmt: skip
    result = judged(spark, tmp_path, came, told, facts, outage_within_s=3.0)
    assert (result.outcome, said in result.summary) == (Outcome.UNDECIDED, True), result.summary


def test_a_load_that_ended_with_the_strike_is_undecided(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(
        spark, tmp_path, outs(), struck(loads(Story()), 19.5).at(22, Action.JOB_RUNNING)
    )
    assert result.outcome == Outcome.UNDECIDED
    assert "the load ended 0.6 s after the fault struck" in result.summary
