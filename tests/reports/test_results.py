"""Results are read back from their file; other schemas are rejected."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streamquake.reports.record.expected_outcome import ExpectedOutcome, Written
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, worst
from streamquake.reports.record.results import Ended, Results
from tests.reports.sample_run import sample_results


@pytest.mark.parametrize("outcome", [Outcome.HELD, Outcome.VIOLATED])
def test_results_are_read_back_unchanged(outcome: Outcome) -> None:
    results = sample_results("run-1", outcome)
    assert Results.from_json(json.loads(json.dumps(results.to_json()))) == results


def test_the_doubt_about_a_check_is_stored_and_missing_in_old_records() -> None:
    results = sample_results("run-1", Outcome.VIOLATED)
    first = replace(results.checks[0], doubt="9 records were read, and the record holds 8")
    doubted = replace(results, checks=(first, *results.checks[1:]))
    document = json.loads(json.dumps(doubted.to_json()))
    assert Results.from_json(document) == doubted
    del document["checks"][0]["doubt"]
    assert Results.from_json(document) == results
    document["checks"][0]["doubt"] = 5
    with pytest.raises(ValueError, match="expected the doubt of a check as a text"):
        Results.from_json(document)


def test_the_keys_and_values_of_the_json_are_stable() -> None:
    document = sample_results("run-1", Outcome.VIOLATED).to_json()
    assert document["schema"] == 1
    assert document["ended"] == "completed"
    assert document["outcome"] == "violated"
    assert document["checks"][0]["outcome"] == "violated"
    assert document["checks"][0]["findings"][0]["what"] == "duplicated"
    assert document["faults"][0]["in_effect"] is True


@pytest.mark.parametrize("schema", [None, 0, 2, True, 1.0])
def test_another_schema_is_rejected(schema: object) -> None:
    document = {**sample_results("run-1", Outcome.HELD).to_json(), "schema": schema}
    with pytest.raises(ValueError, match=f"schema {schema}"):
        Results.from_json(document)


def test_the_worst_outcome_counts_and_no_outcome_is_undecided() -> None:
    assert worst([Outcome.HELD, Outcome.VIOLATED, Outcome.UNDECIDED]) is Outcome.VIOLATED
    assert worst([Outcome.HELD, Outcome.UNDECIDED]) is Outcome.UNDECIDED
    assert worst([]) is Outcome.UNDECIDED


@pytest.mark.parametrize("run_id", ["../../x", "/etc", "a\nb", "", ".", "a b", "x" * 200])
def test_a_run_id_that_is_a_path_is_rejected(run_id: str) -> None:
    document = {**sample_results("run-1", Outcome.HELD).to_json(), "run_id": run_id}

    with pytest.raises(ValueError, match="not a run id"):
        Results.from_json(document)


@pytest.mark.parametrize(
    "changed",
    [{"ended": "nearly"}, {"cause": 3}, {"reason": 5}, {"reason": None}, {"warnings": [{"a": 1}]}],
)
def test_an_end_with_an_invalid_value_is_rejected(changed: dict[str, object]) -> None:
    document = {**sample_results("run-1", Outcome.HELD).to_json(), **changed}

    with pytest.raises(ValueError, match="how the run ended"):
        Results.from_json(document)


@pytest.mark.parametrize(("ended", "expected"), [("completed", True), ("failed_to_run", False)])
def test_only_a_completed_run_is_as_expected(ended: Ended, expected: bool) -> None:
    made = replace(sample_results("run-1", Outcome.HELD), ended=ended, checks=(), faults=())
    undecided = replace(made, outcome=Outcome.UNDECIDED, expected=ExpectedOutcome.of("undecided"))
    assert undecided.as_expected == expected


def test_a_record_of_an_older_version_has_no_cause() -> None:
    document = sample_results("run-1", Outcome.UNDECIDED).to_json()
    del document["cause"]

    assert Results.from_json(document).cause == ""


def test_a_field_of_a_later_version_is_ignored() -> None:
    results = replace(sample_results("run-1", Outcome.UNDECIDED), cause="image failed")

    assert Results.from_json({**results.to_json(), "of_tomorrow": 1}) == results


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.UNDECIDED, "undecided"),
        (Outcome.UNDECIDED, {"exactly_once": ["held", "undecided"]}),
        (Outcome.VIOLATED, "violated"),
        (Outcome.VIOLATED, {"exactly_once": "duplicated"}),
    ],
)
def test_a_run_with_an_incomplete_record_is_not_as_expected(
    outcome: Outcome, expected: Written
) -> None:
    """A check may be undecided, or have found no more, because a part of the record is missing."""
    found = (Finding(what="duplicated"),) if outcome == Outcome.VIOLATED else ()
    check = CheckResult(check="exactly_once", outcome=outcome, summary="", findings=found)
    complete = replace(
        sample_results("run-1", Outcome.HELD),
        outcome=outcome,
        checks=(check,),
        expected=ExpectedOutcome.of(expected),
    )
    damaged = replace(complete, reason="the metrics cannot be read")

    assert (complete.as_expected, complete.unmet) == (True, "")
    assert (damaged.met, damaged.unmet) == (Outcome.UNDECIDED, damaged.reason)
    assert not damaged.as_expected


def test_an_interrupted_run_did_not_complete() -> None:
    cut = replace(sample_results("run-1", Outcome.HELD), ended="interrupted")
    assert (cut.met, cut.unmet) == (Outcome.UNDECIDED, "the run did not complete")
