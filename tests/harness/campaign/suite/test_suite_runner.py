"""A suite on the fakes: reuse of clusters, how the suite ends, and the files that it writes."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from streamquake.cluster.cluster import remove_cluster
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.harness.campaign.clusters import pool
from streamquake.harness.campaign.suite.loader import Row
from streamquake.harness.campaign.suite.model import RowSource
from streamquake.harness.cli.suite import status_of_suite
from streamquake.harness.interrupts import Interrupted
from streamquake.harness.run import cluster_lease, runner
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import read_history
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.suite.suite_results import SuiteFolder
from tests.echo import Echo
from tests.harness.campaign.suite.fake_suites import (
    KILL,
    StatefulEcho,
    SuiteTestbed,
    claim,
    experiment,
    plan_of,
    plan_without_claims,
    runs_of,
    testbed,
    topology,
)

pytestmark = pytest.mark.slow

__all__ = ["testbed"]


def results_json(folder: SuiteFolder) -> dict[str, object]:
    document: dict[str, object] = json.loads(folder.results.read_text("utf-8"))
    return document


def rows(folder: SuiteFolder) -> list[dict[str, object]]:
    found = results_json(folder)["rows"]
    assert isinstance(found, list)
    return found


def outcomes(folder: SuiteFolder) -> list[object]:
    return [row["outcome"] for row in rows(folder)]


def test_runs_of_one_topology_share_a_cluster_but_no_records(
    testbed: SuiteTestbed,
) -> None:
    results, folder = testbed.run_suite(
        plan_without_claims(*(experiment(name) for name in ("a", "b", "c")))
    )
    first = results.rows[0].run
    assert status_of_suite(results) == 0, results.rows
    assert (results.deployments, testbed.clusters) == (1, [first] * 3), testbed.messages
    assert [testbed.runs_before[str(row.run)] for row in results.rows] == [[], [], []]
    assert testbed.leftover_count() == 0
    assert results_json(folder)["deployments"] == 1


def test_without_cleanup_the_next_run_would_read_the_previous_records(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StatefulEcho, "clean", lambda *args: None)
    monkeypatch.setattr(StatefulEcho, "contents", lambda *args: {})
    results, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert testbed.runs_before[str(results.rows[1].run)] == [results.rows[0].run]


def test_a_cleanup_that_leaves_records_is_detected(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StatefulEcho, "clean", lambda *args: None)
    results, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert results.deployments == 2
    left = f"echo: records: {results.rows[0].run} was not there after the deployment"
    assert any(left in line for line in testbed.messages)


def test_every_run_has_its_own_clock_events_and_logs(testbed: SuiteTestbed) -> None:
    results, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    for folder in runs_of(testbed, results):
        history = read_history(folder.history)
        assert history.of(Action.PHASE)[0].at_s < 1
        assert history.of(Action.FAULT_IN_EFFECT)
        log = (folder.logs / "echo-server-2" / "log.txt").read_text("utf-8")
        assert log.split() == ["serving", folder.run_id]


def test_a_cluster_survives_the_kill_of_a_node(testbed: SuiteTestbed) -> None:
    results, _ = testbed.run_suite(
        plan_without_claims(experiment("a", faults=(KILL,)), experiment("b"))
    )
    assert status_of_suite(results) == 0, results.rows
    assert (results.deployments, len(set(testbed.clusters))) == (1, 1)
    assert testbed.leftover_count() == 0


def test_the_runs_share_a_spark_session_that_ends_with_the_suite(testbed: SuiteTestbed) -> None:
    testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    calls = [call for call, _ in testbed.spark.calls]
    assert calls == ["local[*]", "use", "reset", "start", "reset", "stop"]


def test_a_reused_cluster_is_recorded_with_its_proof(testbed: SuiteTestbed) -> None:
    results, _ = testbed.run_suite(
        plan_without_claims(*(experiment(name) for name in ("a", "b", "c")))
    )
    recorded = [
        read_history(run.history).of(Action.CLUSTER_REUSED) for run in runs_of(testbed, results)
    ]
    assert [len(events) for events in recorded] == [0, 1, 1]
    (last,) = recorded[2]
    assert (last.value["deployed_by"], last.value["runs_before"]) == (results.rows[0].run, 2)
    assert last.value["equal"]["processes"] == 3
    assert last.value["equal"]["records"] == 0
    assert last.value["restarted"] == []


def test_another_topology_has_a_new_cluster_after_the_previous_one_is_removed(
    testbed: SuiteTestbed,
) -> None:
    leftovers: list[int] = []
    testbed.on_load_start["b"] = lambda loop: leftovers.append(testbed.leftover_count())
    results, _ = testbed.run_suite(plan_without_claims(experiment("a", "other"), experiment("b")))
    assert (results.deployments, status_of_suite(results)) == (2, 0)
    assert leftovers == [7]  # three nodes, their sandboxes and their network
    # The records of a run are not removed from a cluster that is removed anyway.
    assert [StatefulEcho.written[str(row.run)] for row in results.rows] == [
        [row.run] for row in results.rows
    ]
    assert testbed.leftover_count() == 0


def test_a_cluster_that_cannot_remove_records_is_not_reused(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StatefulEcho, "fails", True)
    results, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert results.deployments == 2
    assert testbed.runs_before[str(results.rows[1].run)] == []
    assert any("the topics are still there" in line for line in testbed.messages)


def test_a_cluster_of_an_engine_without_cleanup_is_not_reused(
    testbed: SuiteTestbed,
) -> None:
    on = topology(engine=Echo.name)
    results, _ = testbed.run_suite(
        plan_without_claims(experiment("a", topology=on), experiment("b", topology=on))
    )
    assert results.deployments == 2
    assert any("has no clean-up after a run" in line for line in testbed.messages)


@pytest.mark.parametrize("action", pool.REUSE_BLOCKERS)
def test_a_cluster_is_not_reused_after_certain_events(
    testbed: SuiteTestbed, action: Action
) -> None:
    recorded: dict[str, Any] = {
        "reason": "-",
        "node": "x",
        "exit_code": 1,
        "step": 9,
        "error": "-",
        "part": "p",
    }
    testbed.on_load_start["a"] = lambda loop: loop.record(action, **recorded)
    results, _ = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert results.deployments == 2
    assert any(pool.REUSE_BLOCKERS[action] in line for line in testbed.messages)


def test_an_unexpected_outcome_fails_the_suite_and_an_expected_violation_does_not(
    testbed: SuiteTestbed,
) -> None:
    testbed.outcomes = {"canary": Outcome.VIOLATED}
    results, _ = testbed.run_suite(
        plan_without_claims(experiment("a"), experiment("canary", expect="violated"))
    )
    assert status_of_suite(results) == 0
    testbed.outcomes = {"a": Outcome.VIOLATED}
    results, folder = testbed.run_suite(
        plan_without_claims(experiment("a"), experiment("canary", expect="violated"))
    )
    assert status_of_suite(results) == 1
    assert outcomes(folder) == ["violated", "held"]
    assert [row["expected"] for row in rows(folder)] == ["held", "violated"]
    assert [row["as_expected"] for row in rows(folder)] == [False, False]
    named = {case.name: case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite}
    (failure,) = named["canary"].result
    assert isinstance(failure, Failure)
    assert "held, but violated was expected" in failure.message


def test_a_failed_run_affects_only_its_row(testbed: SuiteTestbed) -> None:
    def die(spec: ContainerSpec, argv: object) -> ExecResult:
        testbed.runtime.die(testbed.runtime.by_name(spec.name).id, exit_code=9)
        testbed.runtime.on_network_tool = [works]
        return ExecResult(exit_code=0, output="")

    (works,) = testbed.runtime.on_network_tool
    testbed.runtime.on_network_tool = [die]
    results, folder = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert (status_of_suite(results), results.cause) == (3, "cluster failed")
    assert outcomes(folder) == ["undecided", "held"]
    assert "exit code 9" in results.rows[0].why
    assert testbed.leftover_count() == 0
    named = {case.name: case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite}
    assert isinstance(named["a"].result[0], Error)


def test_a_harness_error_affects_only_its_row(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner.run
    broken = iter((True, False))

    def breaks(*args: object, **options: object) -> object:
        if next(broken):
            raise OSError("no space left on device")
        return run(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "run", breaks)
    results, folder = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert outcomes(folder) == ["undecided", "held"]
    assert "no space left on device" in results.rows[0].why
    assert results.rows[0].run is None


def test_an_interruption_ends_the_run_gracefully_and_skips_the_rest(
    testbed: SuiteTestbed,
) -> None:
    def interrupt(loop: EventLoop) -> None:
        loop.listen(lambda event: stop(event.action))

    def stop(action: Action) -> None:
        if action == Action.FAULT_IN_EFFECT:
            signal.raise_signal(signal.SIGINT)

    testbed.on_load_start["b"] = interrupt
    results, folder = testbed.run_suite(
        plan_without_claims(*(experiment(name) for name in ("a", "b", "c")))
    )
    assert status_of_suite(results) == 130
    assert outcomes(folder) == ["held", "undecided", "not run"]
    assert (results_json(folder)["ended"], rows(folder)[2]["run"]) == ("interrupted", None)
    (_, stopped) = runs_of(testbed, results)
    assert stopped.read_results().faults[0].healed
    assert testbed.leftover_count() == 0
    named = {case.name: case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite}
    assert isinstance(named["c"].result[0], Skipped)
    assert "not run" in folder.page.read_text("utf-8")


def test_an_interruption_between_two_runs_removes_the_cluster(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart, times = testbed.clock.restart, []

    def restarting() -> None:
        times.append(testbed.leftover_count())
        if len(times) == 2:
            raise Interrupted("SIGTERM")
        restart()

    monkeypatch.setattr(testbed.clock, "restart", restarting)
    results, folder = testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert times[1] > 0
    assert (results.ended, results.reason) == ("interrupted", "stopped by SIGTERM")
    assert outcomes(folder) == ["held", "not run"]
    assert testbed.leftover_count() == 0


def test_an_interruption_during_the_removal_of_the_last_cluster_leaves_nothing(
    testbed: SuiteTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = iter((True,))
    real_remove_cluster = remove_cluster

    def interrupting(*args: object) -> list[str]:
        if next(interrupted, False):
            raise Interrupted("SIGINT")
        return real_remove_cluster(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster_lease, "remove_cluster", interrupting)
    testbed.run_suite(plan_without_claims(experiment("a")))
    assert testbed.leftover_count() == 0


def test_suite_json_can_be_read_after_every_run(testbed: SuiteTestbed) -> None:
    seen: list[object] = []

    def poll(loop: EventLoop) -> None:
        (path,) = testbed.out.glob("suite-*")
        seen.append((outcomes(SuiteFolder(path)), results_json(SuiteFolder(path))["ended"]))

    testbed.on_load_start = {"a": poll, "b": poll}
    testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    assert seen == [(["not run", "not run"], "interrupted"), (["held", "not run"], "interrupted")]


def test_a_claim_has_its_figures_and_those_of_the_control(testbed: SuiteTestbed) -> None:
    testbed.counts = {"fast": [4.0, 2.0, 3.0], "slow": [50.0, 45.0, 90.0]}
    bound = {"figure": "measure.took_ms", "control_over_claim_at_least": 10}
    source = claim("fast", "slow", figures=("measure.took_ms",), relations=(bound,), note="here")
    plan = plan_of((source, [experiment("fast"), experiment("slow")]), repeats=3)
    results, folder = testbed.run_suite(plan)
    assert status_of_suite(results) == 0, results.rows
    (row,) = rows(folder)
    own = {"n": 3, "median": 3.0, "low": 2.0, "high": 4.0, "spread": 2.0, "values": [4.0, 2.0, 3.0]}
    assert row["figures"] == {"measure.took_ms": own}
    control = row["control"]
    assert isinstance(control, dict)
    assert control["experiment"] == "slow"
    assert control["figures"]["measure.took_ms"]["median"] == 50.0
    assert (row["claim"], row["article"], row["setting"]) == ("it is so", "the article", "on")
    assert (row["note"], row["outcome"], row["expected"]) == ("here", "held", "held")
    assert results.deployments == 1


def test_an_unmet_bound_violates_the_claim(testbed: SuiteTestbed) -> None:
    testbed.counts = {"fast": [4.0], "slow": [39.0]}
    bound = {"figure": "measure.took_ms", "control_over_claim_at_least": 10}
    source = claim("fast", "slow", relations=(bound,))
    results, folder = testbed.run_suite(plan_of((source, [experiment("fast"), experiment("slow")])))
    assert status_of_suite(results) == 1
    assert outcomes(folder) == ["violated"]
    assert results.rows[0].why == (
        "measure.took_ms: control over claim is 9.75, wanted at least 10"
    )


def test_a_claim_that_cannot_be_measured_does_not_affect_the_verdict(testbed: SuiteTestbed) -> None:
    plan = plan_without_claims(experiment("first"))
    source = RowSource(claim="it was so", article="the article", unavailable="no image\n")
    not_here = Row(source=source, experiment=None, control=None, names=())
    results, folder = testbed.run_suite(
        replace(plan, suite=replace(plan.suite, rows=(*plan.suite.rows, not_here)))
    )
    assert results.verdict == Outcome.HELD
    last = results.rows[-1]
    assert (last.outcome_word, last.why) == ("not measured", "not measured: no image")
    assert rows(folder)[-1]["unavailable"] == "no image"


def test_every_run_has_a_progress_line_at_its_begin_and_its_end(testbed: SuiteTestbed) -> None:
    testbed.run_suite(plan_without_claims(experiment("a"), experiment("b")))
    lines = [line.partition("] ")[2] for line in testbed.messages if line.startswith("[")]
    assert lines == [
        "1/2 a (row 1 claim, seed 0)",
        "1/2 a: held, as expected; 1 left, about 37 s",
        "2/2 b (row 2 claim, seed 0)",
        "2/2 b: held, as expected; 0 left",
    ]


def test_the_page_shows_claim_control_and_links_and_makes_no_request(testbed: SuiteTestbed) -> None:
    testbed.counts = {"fast": [4.0], "slow": [50.0]}
    source = claim("fast", "slow", figures=("measure.took_ms",), claim="<b>fast</b> & more")
    results, folder = testbed.run_suite(plan_of((source, [experiment("fast"), experiment("slow")])))
    page = folder.page.read_text("utf-8")
    for run in runs_of(testbed, results):
        assert f'href="../{run.run_id}/report.html"' in page
        assert (folder.path / f"../{run.run_id}/report.html").resolve().exists()
    assert "&lt;b&gt;fast&lt;/b&gt; &amp; more" in page
    assert '<td class="number">4 ms</td><td class="number">50 ms</td>' in page
    assert page.count('class="figure"') == 1
    assert "http://" not in page.partition('id="library"')[0]
    assert Path(folder.page).stat().st_size > 100_000
