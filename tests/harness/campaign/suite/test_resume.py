"""Resuming a suite: recorded runs are reused, and runs with any difference are repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.recorded_runs import RecordedRuns
from streamquake.harness.interrupts import Interrupted
from tests.harness.campaign.suite.fake_suites import (
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    plan_without_claims,
    testbed,
)

__all__ = ["testbed"]


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

    assert len(RecordedRuns(testbed.out)) == 0


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

    assert len(RecordedRuns(testbed.out)) == 0
