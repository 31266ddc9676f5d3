"""Resuming a suite: recorded runs are reused, and runs with any difference are repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.recorded_runs import RecordedRuns
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.run import judging_again
from streamquake.harness.run.versions import judge_digest
from streamquake.harness.verdict.judge import judge as judge_
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.store.results_store import ResultsStore
from streamquake.reports.suite.suite_html import reused_lines
from tests.harness.campaign.suite.fake_suites import (
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    plan_without_claims,
    testbed,
)

pytestmark = pytest.mark.slow

__all__ = ["testbed"]


def recorded_count(testbed: SuiteTestbed) -> int:
    since = datetime.now(UTC) - timedelta(days=1)
    return len(RecordedRuns(testbed.out, testbed.runtime.images(), since=since))


def test_a_recorded_run_is_reused(testbed: SuiteTestbed) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    ran = len(testbed.clusters)

    again, folder = testbed.run_suite(
        plan_without_claims(experiment("a"), experiment("b")), resume=True
    )

    assert len(testbed.clusters) == ran
    assert [row.run for row in again.rows] == [row.run for row in first.rows]
    assert [row.outcome for row in again.rows] == [row.outcome for row in first.rows]
    assert f"a is recorded as {first.rows[0].run}" in testbed.messages
    assert folder.page.is_file()
    assert testbed.leftover_count() == 0


def test_without_resume_every_run_is_repeated(testbed: SuiteTestbed) -> None:
    testbed.run_suite(plan_without_claims(experiment("a")))
    testbed.run_suite(plan_without_claims(experiment("a")))

    assert len(testbed.clusters) == 2


def test_a_run_with_another_setting_is_repeated_but_not_one_with_another_seed(
    testbed: SuiteTestbed,
) -> None:
    testbed.run_suite(plan_without_claims(experiment("a")))
    other = experiment("a", limits={"recover_s": 7})

    changed, _ = testbed.run_suite(plan_without_claims(other), resume=True)
    reseeded, _ = testbed.run_suite(
        plan_without_claims(other.model_copy(update={"seed": 99})), resume=True
    )

    assert len(testbed.clusters) == 2
    assert reseeded.rows[0].run == changed.rows[0].run


@pytest.mark.parametrize(("added", "ran"), [({}, 1), (None, 1), (5, 2)])
def test_a_setting_of_a_later_version_counts_only_if_it_is_given(
    testbed: SuiteTestbed, added: object, ran: int
) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a")))
    manifest = testbed.out / str(first.rows[0].run) / "run.json"
    recorded = json.loads(manifest.read_text("utf-8"))
    recorded["experiment"]["limits"]["of_another_version"] = added
    manifest.write_text(json.dumps(recorded), "utf-8")

    testbed.run_suite(plan_without_claims(experiment("a")), resume=True)

    assert len(testbed.clusters) == ran


def change_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document), "utf-8")


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("run.json", lambda manifest: manifest["versions"].update(streamquake="0.1.0")),
        ("run.json", lambda manifest: manifest["versions"].update(program="another")),
        ("run.json", lambda manifest: manifest["versions"].update(toolbox="0.0.1")),
        ("run.json", lambda manifest: manifest["images"].update({"echo/server": "echo:2"})),
        ("run.json", lambda manifest: manifest.pop("images")),
        (
            "run.json",
            lambda manifest: manifest.update(image_ids=dict.fromkeys(manifest["image_ids"], "new")),
        ),
        ("run.json", lambda manifest: manifest.pop("image_ids")),
        ("run.json", lambda manifest: manifest.update(started_at="recently")),
        ("results.json", lambda results: results["checks"].pop(0)),
        ("results.json", lambda results: results["checks"][1].update(outcome="violated")),
        ("results.json", lambda results: results.update(checks=[])),
    ],
)
def test_a_run_of_another_version_or_with_other_checks_is_not_reused(
    testbed: SuiteTestbed, file: str, change: Callable[[dict[str, Any]], object]
) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a")))
    change_json(testbed.out / str(first.rows[0].run) / file, change)

    again, _ = testbed.run_suite(plan_without_claims(experiment("a")), resume=True)

    assert len(testbed.clusters) == 2
    assert again.rows[0].run != first.rows[0].run


@pytest.mark.parametrize("file", ["history.jsonl", "metrics.parquet", "data/input/read.json"])
def test_a_record_that_changed_since_it_was_judged_is_not_reused(
    testbed: SuiteTestbed, file: str
) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a")))
    run = testbed.out / str(first.rows[0].run)
    (run / file).parent.mkdir(parents=True, exist_ok=True)
    (run / file).touch()
    later_ns = (run / "results.json").stat().st_mtime_ns + 1_000_000
    os.utime(run / file, ns=(later_ns, later_ns))

    testbed.run_suite(plan_without_claims(experiment("a")), resume=True)

    assert len(testbed.clusters) == 2
    assert any(f"{run.name} changed since it was judged" in message for message in testbed.messages)


def test_a_record_without_a_history_is_not_reused(testbed: SuiteTestbed) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a")))
    (testbed.out / str(first.rows[0].run) / "history.jsonl").unlink()

    assert recorded_count(testbed) == 0


def test_a_changed_record_that_was_judged_again_is_reused(testbed: SuiteTestbed) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a")))
    run = testbed.out / str(first.rows[0].run)
    (run / "history.jsonl").touch()
    judged_ns = (run / "history.jsonl").stat().st_mtime_ns + 1_000_000
    os.utime(run / "results.json", ns=(judged_ns, judged_ns))

    testbed.run_suite(plan_without_claims(experiment("a")), resume=True)

    assert len(testbed.clusters) == 1


def test_repeats_reuse_each_recorded_run_once_and_run_the_rest(testbed: SuiteTestbed) -> None:
    testbed.counts["a"] = [100.0, 200.0, 400.0]
    rows = (claim("a", figures=("measure.took_ms",)), [experiment("a")])
    testbed.run_suite(plan_of(rows, repeats=2))

    again, _ = testbed.run_suite(plan_of(rows, repeats=3), resume=True)

    assert len(testbed.clusters) == 3
    assert len({run.run for run in again.rows[0].runs}) == 3
    assert sorted(run.seed for run in again.rows[0].runs) == [0, 1, 2]


def test_an_interrupted_run_is_repeated(testbed: SuiteTestbed) -> None:
    def stop(loop: object) -> None:
        raise Interrupted("SIGINT")

    testbed.on_load_start["a"] = stop
    interrupted, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    testbed.on_load_start.clear()

    resumed, _ = testbed.run_suite(
        plan_without_claims(experiment("a"), experiment("b")), resume=True
    )

    assert interrupted.ended == "interrupted"
    assert resumed.ended == "completed"
    assert resumed.rows[0].run != interrupted.rows[0].run


def test_an_unreadable_record_is_not_reused(testbed: SuiteTestbed) -> None:
    first, _ = testbed.run_suite(plan_without_claims(experiment("a")))
    (testbed.out / str(first.rows[0].run) / "results.json").write_text("{", "utf-8")

    assert recorded_count(testbed) == 0


def test_a_night_that_ran_nothing_is_not_held(testbed: SuiteTestbed) -> None:
    plan = plan_without_claims(experiment("a"), experiment("b"))
    first, _ = testbed.run_suite(plan)
    assert (first.verdict, first.reused) == (Outcome.HELD, ())

    again, folder = testbed.run_suite(plan, resume=True)

    assert again.reused == tuple(row.run for row in first.rows)
    assert (again.ran_nothing, again.verdict) == (True, Outcome.UNDECIDED)
    assert json.loads(folder.results.read_text("utf-8"))["reused"] == list(again.reused)
    assert list(reused_lines(again)) == [
        f"2 recorded runs taken over: {', '.join(again.reused)}",
        "nothing was run, so the suite is undecided; without --resume every run is repeated",
    ]

    more, _ = testbed.run_suite(
        plan_without_claims(experiment("a"), experiment("new")), resume=True
    )
    assert (more.ran_nothing, more.verdict) == (False, Outcome.HELD)
    assert list(reused_lines(first)) == []


def test_a_run_that_is_too_old_is_repeated(testbed: SuiteTestbed) -> None:
    plan = plan_without_claims(experiment("a"))
    first, _ = testbed.run_suite(plan)
    manifest = testbed.out / str(first.rows[0].run) / "run.json"
    hours_ago = datetime.now(UTC) - timedelta(hours=5)
    change_json(manifest, lambda document: document.update(started_at=hours_ago.isoformat()))

    testbed.run_suite(plan, resume=True, max_age=timedelta(hours=6))
    assert len(testbed.clusters) == 1
    testbed.run_suite(plan, resume=True, max_age=timedelta(hours=4))
    assert len(testbed.clusters) == 2
    assert "1 recorded runs are too old and do not count" in testbed.messages


@pytest.mark.parametrize("judge", ["of another version", ""])
def test_a_run_that_another_judge_judged_is_judged_again(
    testbed: SuiteTestbed, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record has no evidence of the outcome that the other judge gave."""
    plan = plan_without_claims(experiment("a"))
    first, _ = testbed.run_suite(plan)
    run = str(first.rows[0].run)
    change_json(testbed.out / run / "results.json", lambda results: results.update(judge=judge))
    testbed.outcomes["a"] = Outcome.VIOLATED
    monkeypatch.setattr(judging_again, "recorded_experiment", lambda folder: experiment("a"))
    monkeypatch.setattr(
        judging_again,
        "judge",
        lambda *args, **options: testbed.with_measurement(judge_(*args, **options)),
    )

    again, _ = testbed.run_suite(plan, resume=True)

    assert len(testbed.clusters) == 1
    assert f"judging {run} again: another version judged it" in testbed.messages
    assert (again.rows[0].run, again.rows[0].outcome) == (run, Outcome.VIOLATED)
    saved = RunFolder(testbed.out / run).read_results()
    assert (saved.outcome, saved.judge) == (Outcome.VIOLATED, judge_digest())
    (stored,) = ResultsStore(testbed.out).runs()
    assert (stored.outcome, stored.judge) == ("violated", judge_digest())


def test_a_run_that_cannot_be_judged_again_is_repeated(testbed: SuiteTestbed) -> None:
    """The topology of these fakes has no service that a loaded experiment needs."""
    plan = plan_without_claims(experiment("a"))
    first, _ = testbed.run_suite(plan)
    run = str(first.rows[0].run)
    change_json(testbed.out / run / "results.json", lambda results: results.update(judge="another"))

    again, _ = testbed.run_suite(plan, resume=True)

    assert again.rows[0].run != run
    assert again.reused == ()
    assert any(f"{run} cannot be judged again and is repeated" in m for m in testbed.messages)
