"""A shrink on planted runs: what is left, how it ends, and the files that it writes."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.shrinking.failing_cases import FILE
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.json_lines import read_lines, write_lines
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended
from streamquake.topologies.problems import BadInput
from tests.harness.campaign.shrinking.planted import (
    RUN,
    ShrinkTestbed,
    flaky,
    moments,
    pauses,
    plan,
)

pytestmark = pytest.mark.slow

EIGHT = pauses(*range(1, 9))
KAFKA = {"name": "mine", "services": {"kafka": {"engine": "kafka", "nodes": {"broker": 1}}}}
ONE_RECORD = {"numbered": {"records": 1, "rate_per_s": 1, "keys": 1}}


@pytest.fixture
def testbed(tmp_path: Path) -> ShrinkTestbed:
    return ShrinkTestbed(tmp_path)


def both(experiment: Experiment) -> bool:
    """The steps at 2 s and 6 s are both needed."""
    return {2.0, 6.0} <= moments(experiment)


def interrupt() -> Ended:
    """Ctrl-C during a run, which then ends in order."""
    with pytest.raises(BaseException, match="SIGINT"):
        signal.raise_signal(signal.SIGINT)
    return "interrupted"


def test_only_what_the_failure_needs_is_left(testbed: ShrinkTestbed) -> None:
    def fails(experiment: Experiment) -> bool:
        needed = experiment.topology.services["kafka"].config.get("num.io.threads") == 4
        return both(experiment) and (experiment.workload.planned or 0) >= 3000 and needed

    results, folder = testbed.shrink(plan(faults=EIGHT), fails)
    smallest = load_experiment(str(folder.smallest))

    assert results.is_smallest, testbed.messages
    assert moments(smallest) == {2.0, 6.0}
    assert smallest.workload.planned == 4000
    assert {step.for_s for step in smallest.faults} == {0.1}
    assert smallest.topology.services["kafka"].config == {"num.io.threads": 4}
    assert fails(smallest)
    assert results.taken_away[0].startswith("6 of 8 steps: 1 pause on kafka/broker-1; 3 pause")
    changed = {line.partition(": ")[0]: line.partition(": ")[2] for line in results.taken_away[1:]}
    assert changed == {
        "topology.services.kafka.config.log.retention.ms": "60000 is left out",
        "workload.numbered.records": "4000 in place of 64000",
        "workload.numbered.keys": "1 in place of 32",
        "workload.numbered.payload_bytes": "500 is left out",
        "step 2 pause.for_s": "0.1 in place of 4.0",
        "step 6 pause.for_s": "0.1 in place of 4.0",
    }


def test_without_a_cause_in_the_schedule_no_step_is_left(testbed: ShrinkTestbed) -> None:
    _, folder = testbed.shrink(plan(faults=EIGHT), lambda experiment: True)
    assert load_experiment(str(folder.smallest)).faults == ()
    assert testbed.runs[1].faults == ()


def test_a_failure_of_70_percent_is_shrunk_too(tmp_path: Path) -> None:
    """With 2 of 5 tries an answer is wrong with 3 %: then a step is left that is not needed, or the
    failure does not appear again at all. A needed step is never taken away."""
    left: list[set[float | None]] = []
    bare = [{key: value for key, value in step.items() if key != "for_s"} for step in EIGHT]
    for seed in range(8):
        testbed = ShrinkTestbed(tmp_path / str(seed))
        planned = plan(faults=bare, tries=2, of=5, topology=KAFKA, workload=ONE_RECORD)
        results, folder = testbed.shrink(planned, flaky(both, 0.7, seed))
        if results.rate is not None:
            assert results.rate.n == 5
            assert [run.outcome for run in results.runs].count("fails") == results.rate.count >= 2
            left.append(moments(load_experiment(str(folder.smallest))))
    assert all({2.0, 6.0} <= each for each in left)
    assert left.count({2.0, 6.0}) >= 6, left


def test_a_failure_that_does_not_appear_again_is_undecided(testbed: ShrinkTestbed) -> None:
    results, folder = testbed.shrink(plan(tries=2, of=3), lambda experiment: False)
    assert (results.rate, results.outcome, results.cause) == (None, Outcome.UNDECIDED, "undecided")
    assert "did not fail again in at least 2 of 3 tries" in results.reason
    assert len(testbed.runs) == 2, "a third try could not have made it count"
    assert not folder.smallest.exists()


def test_undecided_tries_are_repeated_and_reported(testbed: ShrinkTestbed) -> None:
    answers = iter([None, True, None, None])
    results, _ = testbed.shrink(plan(faults=[]), lambda experiment: next(answers, False))
    first, second = results.candidates[:2]
    assert (first.counts, first.tries) == (True, "fails 1 of 1, 1 undecided")
    assert (second.counts, second.tries) == (False, "fails 0 of 0, 2 undecided")
    assert results.undecided == (first, second)


def test_ctrl_c_leaves_the_smallest_so_far_and_a_second_call_goes_on(
    testbed: ShrinkTestbed,
) -> None:
    planned = plan(faults=EIGHT)
    whole, _ = ShrinkTestbed(testbed.out / "whole").shrink(planned, both)
    results, folder = testbed.shrink(planned, both, before_run={12: interrupt})

    assert (results.ended, results.reason) == (
        "interrupted",
        "interrupted: stopped by SIGINT",
    )
    assert json.loads(folder.results.read_text("utf-8"))["ended"] == "interrupted"
    so_far = load_experiment(str(folder.smallest))
    assert both(so_far)
    assert len(so_far.faults) < len(EIGHT)
    assert results.again == f"streamquake shrink {RUN}"
    assert not results.is_smallest

    second, _ = testbed.shrink(planned, both)
    assert second.is_smallest
    assert second.runs_made < whole.runs_made
    assert (
        load_experiment(str(folder.smallest)).faults
        == load_experiment(str(testbed.out / "whole" / folder.path.name / "smallest.yaml")).faults
    )


def test_the_tries_of_a_finished_shrink_are_not_repeated(testbed: ShrinkTestbed) -> None:
    first, _ = testbed.shrink(plan(faults=EIGHT), both)
    second, _ = testbed.shrink(plan(faults=EIGHT), both)
    assert (first.is_smallest, second.is_smallest, second.runs_made) == (True, True, 0)
    assert second.taken_away == first.taken_away


def test_tries_with_another_failure_do_not_count(testbed: ShrinkTestbed) -> None:
    planned = plan()
    testbed.shrink(planned, lambda experiment: True)
    other = replace(planned, failure=replace(planned.failure, found="duplicated"))
    results, _ = testbed.shrink(other, lambda experiment: True)
    assert results.rate is None, "only `lost` is found"


def test_a_budget_ends_the_shrink_before_a_run_that_does_not_fit(testbed: ShrinkTestbed) -> None:
    results, folder = testbed.shrink(plan(faults=EIGHT), both, budget_s=170)
    assert (results.runs_made, results.elapsed_s) == (4, 160.0)
    assert (results.ended, results.is_smallest) == ("completed", False)
    assert results.reason == "the time of 3 min is used"
    assert both(load_experiment(str(folder.smallest)))


def test_runs_that_fail_to_run_end_the_shrink(testbed: ShrinkTestbed) -> None:
    def fail() -> Ended:
        return "failed_to_run"

    failing = dict.fromkeys(range(2, 99), fail)
    results, _ = testbed.shrink(plan(tries=3, of=5), lambda experiment: True, before_run=failing)
    assert (results.ended, len(testbed.runs)) == ("failed_to_run", 4)
    assert "3 runs in a row failed to run" in results.reason


def test_a_later_shrink_tries_the_failing_case_first(testbed: ShrinkTestbed) -> None:
    first, _ = testbed.shrink(plan(faults=EIGHT), both)
    later = replace(plan(faults=EIGHT, seed=8), run="20260202-000000-abcd")
    results, folder = testbed.shrink(later, both)
    assert moments(testbed.runs[1]) == {2.0, 6.0}
    assert results.is_smallest
    assert results.runs_made < first.runs_made / 2
    assert load_experiment(str(folder.smallest)).seed == 7, "the seed of the failing case"


def test_a_failing_case_that_adds_anything_is_not_run(testbed: ShrinkTestbed) -> None:
    """The file may come from another person; a case is only a part of the experiment at hand."""
    _, folder = testbed.shrink(plan(faults=EIGHT), both)
    (line,) = read_lines(testbed.out / FILE)
    kafka = line["document"]["topology"]["services"]["kafka"]
    load = line["document"]["workload"]["numbered"]
    changes = [
        (line["document"], "checks", [{"command": {"run": ["rm", "-rf", "/"]}}]),
        (kafka, "image", "evil:latest"),
        (load, "topic", "other"),
        (load, "records", 128000),
        (line, "steps", [2, 99]),
        (line, "steps", "2"),
        (line, "document", "no document"),
        (line["document"], "workload", {}),
        (line["document"], "faults", [{}, {}]),
        (line["document"], "seed", "seven"),
    ]
    lines: list[dict[str, Any]] = []
    for owner, key, value in changes:
        before = owner.get(key)
        owner[key] = value
        lines.append(json.loads(json.dumps({**line, "shrink": str(len(lines))})))
        owner[key] = before
        if before is None:
            del owner[key]
    write_lines(testbed.out / FILE, lines)
    folder.tries.unlink()
    testbed.shrink(plan(faults=EIGHT), both)
    assert [len(each.faults) for each in testbed.runs[:2]] == [8, 0]
    assert all(each.checks[0].name == "exactly_once" for each in testbed.runs)


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}\nnull\n'])
def test_a_damaged_file_is_named_with_its_line(testbed: ShrinkTestbed, text: str) -> None:
    (testbed.out / FILE).write_text(text, "utf-8")
    with pytest.raises(
        BadInput, match=rf"{FILE}:\d: (not JSON|expected an object).*remove the line"
    ):
        testbed.shrink(plan(), both)


def test_the_page_links_every_run_and_escapes_what_it_shows(testbed: ShrinkTestbed) -> None:
    (testbed.out / "run-0001").mkdir()
    (testbed.out / "run-0001" / "report.html").write_text("page")
    results, folder = testbed.shrink(plan(description="<script>alert(1)</script>"), both)
    page = folder.page.read_text("utf-8")
    assert '<a href="../run-0001/report.html">run-0001</a>' in page
    assert "<script>" not in page
    assert results.warnings == ()


def test_the_progress_has_the_candidate_its_tries_and_the_time_left(
    testbed: ShrinkTestbed,
) -> None:
    testbed.shrink(plan(faults=pauses(2.0, 6.0), tries=2, of=2), both)
    assert testbed.messages[:6] == [
        "[     0 s] candidate 1, try 1: the experiment of the run",
        "    fails: judged (run-0001)",
        "[    40 s] candidate 1, try 2: the experiment of the run",
        "    fails: judged (run-0002)",
        "[    80 s] candidate 1, fails 2 of 2, counts; at most about 9 candidates left, 6 min",
        "[    80 s] candidate 2, try 1: without the steps 1, 2",
    ]
