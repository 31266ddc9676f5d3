"""JUnit XML: what CI systems read. A violated check is a failure, an undecided one an error.

Each run is one test suite. It has a test case for the run itself, one for each check and one for
the effect of each fault. The seed and the replay command are properties of the suite; the first
test case carries the summary as its output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from streamquake.reports.record import atomic_files
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, worst
from streamquake.reports.record.results import FaultRecord, Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.reports.run.text import plain_summary
from streamquake.reports.suite.suite_results import RowResult, SuiteResults

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (https://www.w3.org/TR/xml/#charsets)."""


def write_junit(results: Results, folder: RunFolder) -> Path:
    """Write junit.xml of one run into its folder. Only the run's own outcome counts, not the
    expected one."""
    return _write([_suite(results, folder, _run_cases(results))], folder.junit)


def write_suite_junit(
    runs: Iterable[tuple[Results, RunFolder]], path: Path, suite: SuiteResults | None = None
) -> Path:
    """Write the JUnit file of many runs. Each passes if its outcome is the expected one.

    A run whose expected outcome is not *held* has one test case for that outcome. The rows of a
    `suite` are the cases of a separate test suite, which is the first in the file, together with
    what became worse than its baseline. Runs that do not count there, since they were tried again
    or their rows are quarantined, are left out.
    """
    counting = _runs_that_count(suite) if suite is not None else set()
    suites = [
        _suite(
            results,
            folder,
            _run_cases(results) if _expects_held(results) else [_as_expected(results)],
        )
        for results, folder in runs
        if suite is None or results.run_id in counting
    ]
    return _write(suites if suite is None else [_rows_suite(suite), *suites], path)


def _rows_suite(suite: SuiteResults) -> TestSuite:
    rows = TestSuite(_clean(f"suite {suite.suite}"))
    rows.add_property("seed", str(suite.seed))
    rows.add_property("again", _clean(suite.again))
    cases = [_case(row.title, _row_problem(row)) for row in suite.rows]
    worse = (change for change in suite.changes if change.is_worse)
    cases += [
        _case(
            f"{change.experiment} {change.figure} against {suite.against}",
            Failure(_clean(change.text), "worse"),
        )
        for change in worse
    ]
    for case in cases:
        case.classname = _clean(f"streamquake.suite.{suite.suite}")
        rows.add_testcase(case)
    return rows


def _runs_that_count(suite: SuiteResults) -> set[str | None]:
    """The runs whose outcome counts in a row: the last attempt of each, in rows that count."""
    last: dict[tuple[int, tuple[str, str, int]], str | None] = {}
    for number, row in enumerate(suite.rows):
        if row.counts:
            last |= {(number, run.place): run.run for run in row.runs}
    return {*last.values()}


def _row_problem(row: RowResult) -> Failure | Error | Skipped | None:
    """The failure or error of a row that is not as expected; one that was not run is skipped."""
    why = _clean(row.why)
    if not row.counts and row.quarantined is not None and not row.as_expected:
        return Skipped(_clean(f"quarantined: {row.quarantined}; {row.why}"))
    match row.verdict:
        case Outcome.HELD:
            return None
        case Outcome.VIOLATED:
            return Failure(why, "unexpected")
        case Outcome.UNDECIDED:
            return Error(why, "undecided")
    return Skipped(why)


def _expects_held(results: Results) -> bool:
    return results.expected.outcome == Outcome.HELD


def _write(suites: Iterable[TestSuite], path: Path) -> Path:
    document = JUnitXml("streamquake")
    for suite in suites:
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    with atomic_files.atomic_replacement(path) as draft:
        document.write(str(draft), pretty=True)
    return path


def _suite(results: Results, folder: RunFolder, cases: Iterable[TestCase]) -> TestSuite:
    suite = TestSuite(_clean(results.experiment))
    suite.add_property("run_id", _clean(results.run_id))
    suite.add_property("seed", str(results.seed))
    suite.add_property("outcome", str(results.outcome))
    suite.add_property("expected", _clean(str(results.expected)))
    suite.add_property("replay", _clean(results.replay))
    for place, case in enumerate(cases):
        case.classname = _clean(f"streamquake.{results.experiment}")
        if place == 0:
            case.system_out = _clean(plain_summary(results, folder))
        suite.add_testcase(case)
    return suite


def _run_cases(results: Results) -> list[TestCase]:
    checks = [_check_case(check) for check in results.checks]
    return [_ended_case(results), *checks, *(_fault_case(fault) for fault in results.faults)]


def _ended_case(results: Results) -> TestCase:
    """The test case of the run itself: it passes if the run completed and its record is complete. A
    record with missing parts makes a run undecided even if all its checks are held."""
    if results.ended != "completed":
        return _case(
            "run completed", Error(_clean(run_sentences.why(results)), _clean(results.ended))
        )
    if results.outcome > worst(check.outcome for check in results.checks):
        return _case(
            "run completed", Error(_clean(run_sentences.why(results)), str(results.outcome))
        )
    return _case("run completed")


def _check_case(check: CheckResult) -> TestCase:
    name = f"check {check.check}"
    if check.outcome == Outcome.HELD:
        return _case(name)
    kind = Failure if check.outcome == Outcome.VIOLATED else Error
    result = kind(_clean(check.summary), str(check.outcome))
    result.text = _clean("\n".join(_line(finding) for finding in check.findings))
    return _case(name, result)


def _fault_case(fault: FaultRecord) -> TestCase:
    name = f"fault {fault.fault} on {fault.target}"
    if fault.in_effect and fault.healed and fault.ended_early_s is None:
        return _case(name)
    return _case(name, Error(_clean(run_sentences.fault_result(fault)), "undecided"))


def _as_expected(results: Results) -> TestCase:
    name = f"outcome is {results.expected}"
    if results.as_expected:
        return _case(name)
    message = f"{run_sentences.headline(results)}: {run_sentences.why(results)}"
    return _case(name, Failure(_clean(message), "unexpected"))


def _case(name: str, result: Failure | Error | Skipped | None = None) -> TestCase:
    case = TestCase(_clean(name))
    if result is not None:
        case.result = [result]
    return case


def _line(finding: Finding) -> str:
    return f"{finding.what} {finding.where} {run_sentences.detail_text(finding.detail)}".strip()


def _clean(text: str) -> str:
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
