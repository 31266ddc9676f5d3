"""JUnit: violated is a failure, undecided is an error, held passes. The same library reads the
file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from streamquake.reports.junit import write_junit, write_suite_junit
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import FaultRecord, Results
from streamquake.reports.record.run_folder import RunFolder
from tests.reports.sample_run import sample_results, write_failed_run


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "run-1")


def suites(path: Path) -> list[TestSuite]:
    return list(JUnitXml.fromfile(str(path)))


def cases(results: Results, folder: RunFolder) -> dict[str, TestCase]:
    (suite,) = suites(write_junit(results, folder))
    return {case.name: case for case in suite}


def test_a_run_is_a_suite_with_cases_for_the_run_each_check_and_each_fault(
    folder: RunFolder,
) -> None:
    found = cases(sample_results("run-1", Outcome.HELD), folder)
    assert list(found) == [
        "run completed",
        "check exactly_once",
        "check recovery",
        "check effect",
        "fault kill on one of flink/taskmanager",
    ]
    assert all(case.is_passed for case in found.values())
    assert "replay      streamquake replay runs/run-1" in found["run completed"].system_out


def test_a_violated_check_is_a_failure_with_its_findings(folder: RunFolder) -> None:
    found = cases(sample_results("run-1", Outcome.VIOLATED), folder)
    (failure,) = found["check exactly_once"].result
    assert isinstance(failure, Failure)
    assert failure.message == "9,214 records are twice in totals"
    assert "totals, partition 0, offset 50112" in failure.text
    assert found["check recovery"].is_passed


def test_undecided_is_an_error_with_its_reason(folder: RunFolder) -> None:
    undecided = CheckResult(
        check="exactly_once", outcome=Outcome.UNDECIDED, summary="no checkpoint during the fault"
    )
    fault = FaultRecord(
        fault="kill",
        target="flink/taskmanager-1",
        nodes=(),
        injected_s=None,
        in_effect=False,
        reason="still running",
    )
    results = dataclasses.replace(
        sample_results("run-1", Outcome.HELD), checks=(undecided,), faults=(fault,)
    )
    found = cases(results, folder)
    for name, reason in (
        ("check exactly_once", "no checkpoint during the fault"),
        ("fault kill on flink/taskmanager-1", "effect not verified: still running"),
    ):
        (error,) = found[name].result
        assert isinstance(error, Error)
        assert error.message == reason


def test_a_run_that_failed_to_run_is_an_error_not_an_empty_suite(tmp_path: Path) -> None:
    folder = write_failed_run(tmp_path)
    (case,) = cases(folder.read_results(), folder).values()
    (error,) = case.result
    assert isinstance(error, Error)
    assert "exit code 1" in error.message


def test_seed_run_and_replay_are_properties(folder: RunFolder) -> None:
    (suite,) = suites(write_junit(sample_results("run-1", Outcome.HELD), folder))
    properties = {item.name: item.value for item in suite.properties()}  # type: ignore[no-untyped-call]
    assert properties["seed"] == "7"
    assert properties["run_id"] == "run-1"
    assert properties["replay"] == "streamquake replay runs/run-1"


def test_characters_that_xml_cannot_hold_do_not_break_the_file(folder: RunFolder) -> None:
    hostile = CheckResult(
        check="a\x00<b>", outcome=Outcome.VIOLATED, summary='\x1b[31m"]]> & \ud800 \ufffe'
    )
    results = dataclasses.replace(sample_results("run-1", Outcome.HELD), checks=(hostile,))
    (failure,) = cases(results, folder)["check a\ufffd<b>"].result
    assert failure.message == '\ufffd[31m"]]> & \ufffd \ufffd'


def test_a_run_of_a_suite_passes_if_its_outcome_is_the_expected_one(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1")
    held, violated = (
        sample_results("run-1", Outcome.HELD),
        sample_results("run-1", Outcome.VIOLATED),
    )
    runs = [
        (held, folder),
        (dataclasses.replace(violated, expected=ExpectedOutcome(outcome=Outcome.VIOLATED)), folder),
        (dataclasses.replace(held, expected=ExpectedOutcome(outcome=Outcome.VIOLATED)), folder),
    ]
    document = JUnitXml.fromfile(str(write_suite_junit(runs, tmp_path / "suite.xml")))
    assert (document.tests, document.failures, document.errors) == (7, 1, 0)
    (blind,) = list(document)[2]
    assert blind.result[0].message.startswith("held, but violated was expected")


def test_an_outcome_worse_than_those_of_the_checks_is_an_error_of_the_run(
    folder: RunFolder,
) -> None:
    """For example, a part of the record is missing."""
    complete = sample_results("run-1", Outcome.HELD)
    assert cases(complete, folder)["run completed"].is_passed
    damaged = dataclasses.replace(
        complete, outcome=Outcome.UNDECIDED, reason="the metrics cannot be read"
    )
    (error,) = cases(damaged, folder)["run completed"].result
    assert isinstance(error, Error)
    assert (error.type, "the metrics cannot be read" in error.message) == ("undecided", True)
