"""A suite on the fakes: clusters handed on or not, its ends, and what it leaves on disk."""

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
from streamquake.harness.campaign.suite import cluster_pool
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
from tests.harness.campaign.suite.acting import (
    KILL,
    Remembering,
    Theatre,
    claim,
    experiment,
    plain,
    plan_of,
    runs_of,
    theatre,
    topology,
)

__all__ = ["theatre"]


def written(folder: SuiteFolder) -> dict[str, object]:
    document: dict[str, object] = json.loads(folder.results.read_text("utf-8"))
    return document


def rows(folder: SuiteFolder) -> list[dict[str, object]]:
    found = written(folder)["rows"]
    assert isinstance(found, list)
    return found


def outcomes(folder: SuiteFolder) -> list[object]:
    return [row["outcome"] for row in rows(folder)]


def test_runs_of_one_topology_share_a_cluster_and_see_nothing_of_each_other(
    theatre: Theatre,
) -> None:
    results, folder = theatre.play(plain(*(experiment(name) for name in ("a", "b", "c"))))
    first = results.rows[0].run
    assert status_of_suite(results) == 0, results.rows
    assert (results.deployments, theatre.clusters) == (1, [first] * 3), theatre.messages
    assert [theatre.saw[str(row.run)] for row in results.rows] == [[], [], []]
    assert theatre.left() == 0
    assert written(folder)["deployments"] == 1


def test_without_forgetting_the_next_run_would_have_seen_the_former_one(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembering, "forget", lambda *args: None)
    results, _ = theatre.play(plain(experiment("a"), experiment("b")))
    assert theatre.saw[str(results.rows[1].run)] == [results.rows[0].run]


def test_every_run_has_its_own_clock_events_and_logs(theatre: Theatre) -> None:
    results, _ = theatre.play(plain(experiment("a"), experiment("b")))
    for folder in runs_of(theatre, results):
        history = read_history(folder.history)
        assert history.of(Action.PHASE)[0].at_s < 1
        assert history.of(Action.FAULT_IN_EFFECT)
        log = (folder.logs / "echo-server-2" / "log.txt").read_text("utf-8")
        assert log.split() == ["serving", folder.run_id]


def test_after_a_node_was_killed_the_next_run_has_a_new_cluster(theatre: Theatre) -> None:
    results, _ = theatre.play(plain(experiment("a", faults=(KILL,)), experiment("b")))
    assert status_of_suite(results) == 0, results.rows
    assert (results.deployments, len(set(theatre.clusters))) == (2, 2)
    assert any("the process of echo/server-1 was replaced" in line for line in theatre.messages)
    assert theatre.left() == 0


def test_another_topology_gets_a_new_cluster_and_the_former_one_is_removed_first(
    theatre: Theatre,
) -> None:
    there: list[int] = []
    theatre.during["b"] = lambda loop: there.append(theatre.left())
    results, _ = theatre.play(plain(experiment("a", "other"), experiment("b")))
    assert (results.deployments, status_of_suite(results)) == (2, 0)
    assert there == [4]  # three nodes and their network
    # A cluster that is removed anyway need not be cleaned of its run.
    assert [Remembering.written[str(row.run)] for row in results.rows] == [
        [row.run] for row in results.rows
    ]
    assert theatre.left() == 0


def test_a_service_that_cannot_forget_is_not_handed_on(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembering, "fails", True)
    results, _ = theatre.play(plain(experiment("a"), experiment("b")))
    assert results.deployments == 2
    assert theatre.saw[str(results.rows[1].run)] == []
    assert any("the topics are still there" in line for line in theatre.messages)


def test_an_engine_that_knows_nothing_of_forgetting_is_not_handed_on(
    theatre: Theatre,
) -> None:
    on = topology(engine=Echo.name)
    results, _ = theatre.play(plain(experiment("a", topology=on), experiment("b", topology=on)))
    assert results.deployments == 2
    assert any("cannot remove the residue of a run" in line for line in theatre.messages)


@pytest.mark.parametrize("action", cluster_pool.REUSE_BLOCKERS)
def test_what_a_run_says_of_itself_can_spoil_its_cluster(theatre: Theatre, action: Action) -> None:
    recorded: dict[str, Any] = {
        "reason": "-",
        "node": "x",
        "exit_code": 1,
        "step": 9,
        "error": "-",
        "part": "p",
    }
    theatre.during["a"] = lambda loop: loop.record(action, **recorded)
    results, _ = theatre.play(plain(experiment("a"), experiment("b")))
    assert results.deployments == 2
    assert any(cluster_pool.REUSE_BLOCKERS[action] in line for line in theatre.messages)


def test_an_unexpected_outcome_fails_the_suite_and_an_expected_violation_does_not(
    theatre: Theatre,
) -> None:
    theatre.outcomes = {"canary": Outcome.VIOLATED}
    results, _ = theatre.play(plain(experiment("a"), experiment("canary", expect="violated")))
    assert status_of_suite(results) == 0
    theatre.outcomes = {"a": Outcome.VIOLATED}
    results, folder = theatre.play(plain(experiment("a"), experiment("canary", expect="violated")))
    assert status_of_suite(results) == 1
    assert outcomes(folder) == ["violated", "held"]
    assert [row["expected"] for row in rows(folder)] == ["held", "violated"]
    assert [row["as_expected"] for row in rows(folder)] == [False, False]
    named = {case.name: case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite}
    (failure,) = named["canary"].result
    assert isinstance(failure, Failure)
    assert "held, but violated was expected" in failure.message


def test_a_run_that_fails_to_run_costs_its_row_only(theatre: Theatre) -> None:
    def die(spec: ContainerSpec, argv: object) -> ExecResult:
        theatre.runtime.die(theatre.runtime.by_name(spec.name).id, exit_code=9)
        theatre.runtime.on_network_tool = [works]
        return ExecResult(exit_code=0, output="")

    (works,) = theatre.runtime.on_network_tool
    theatre.runtime.on_network_tool = [die]
    results, folder = theatre.play(plain(experiment("a"), experiment("b")))
    assert (status_of_suite(results), results.cause) == (3, "cluster failed")
    assert outcomes(folder) == ["undecided", "held"]
    assert "exit code 9" in results.rows[0].why
    assert theatre.left() == 0
    named = {case.name: case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite}
    assert isinstance(named["a"].result[0], Error)


def test_a_failure_of_the_harness_itself_costs_its_row_only(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner.run
    broken = iter((True, False))

    def breaks(*args: object, **options: object) -> object:
        if next(broken):
            raise OSError("no space left on device")
        return run(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "run", breaks)
    results, folder = theatre.play(plain(experiment("a"), experiment("b")))
    assert outcomes(folder) == ["undecided", "held"]
    assert "no space left on device" in results.rows[0].why
    assert results.rows[0].run is None


def test_an_interruption_ends_the_run_in_order_and_leaves_the_rest_not_run(
    theatre: Theatre,
) -> None:
    def interrupt(loop: EventLoop) -> None:
        loop.listen(lambda event: stop(event.action))

    def stop(action: Action) -> None:
        if action == Action.FAULT_IN_EFFECT:
            signal.raise_signal(signal.SIGINT)

    theatre.during["b"] = interrupt
    results, folder = theatre.play(plain(*(experiment(name) for name in ("a", "b", "c"))))
    assert status_of_suite(results) == 130
    assert outcomes(folder) == ["held", "undecided", "not run"]
    assert (written(folder)["ended"], rows(folder)[2]["run"]) == ("interrupted", None)
    (_, stopped) = runs_of(theatre, results)
    assert stopped.read_results().faults[0].healed
    assert theatre.left() == 0
    named = {case.name: case for suite in JUnitXml.fromfile(str(folder.junit)) for case in suite}
    assert isinstance(named["c"].result[0], Skipped)
    assert "not run" in folder.page.read_text("utf-8")


def test_an_interruption_between_two_runs_removes_the_cluster_that_stands(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart, times = theatre.clock.restart, []

    def restarting() -> None:
        times.append(theatre.left())
        if len(times) == 2:
            raise Interrupted("SIGTERM")
        restart()

    monkeypatch.setattr(theatre.clock, "restart", restarting)
    results, folder = theatre.play(plain(experiment("a"), experiment("b")))
    assert times[1] > 0
    assert (results.ended, results.reason) == ("interrupted", "stopped by SIGTERM")
    assert outcomes(folder) == ["held", "not run"]
    assert theatre.left() == 0


def test_an_interruption_while_the_last_cluster_is_removed_leaves_nothing(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = iter((True,))
    whole = remove_cluster

    def interrupting(*args: object) -> list[str]:
        if next(interrupted, False):
            raise Interrupted("SIGINT")
        return whole(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster_lease, "remove_cluster", interrupting)
    theatre.play(plain(experiment("a")))
    assert theatre.left() == 0


def test_suite_json_can_be_read_after_every_run(theatre: Theatre) -> None:
    seen: list[object] = []

    def poll(loop: EventLoop) -> None:
        (path,) = theatre.out.glob("suite-*")
        seen.append((outcomes(SuiteFolder(path)), written(SuiteFolder(path))["ended"]))

    theatre.during = {"a": poll, "b": poll}
    theatre.play(plain(experiment("a"), experiment("b")))
    assert seen == [(["not run", "not run"], "interrupted"), (["held", "not run"], "interrupted")]


def test_a_claim_has_its_figures_beside_those_of_the_control(theatre: Theatre) -> None:
    theatre.counts = {"fast": [4.0, 2.0, 3.0], "slow": [50.0, 40.0, 90.0]}
    bound = {"figure": "measure.took_ms", "control_over_claim_at_least": 10}
    source = claim("fast", "slow", figures=("measure.took_ms",), relations=(bound,), note="here")
    plan = plan_of((source, [experiment("fast"), experiment("slow")]), repeats=3)
    results, folder = theatre.play(plan)
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


def test_a_relation_that_is_not_met_violates_the_claim(theatre: Theatre) -> None:
    theatre.counts = {"fast": [4.0], "slow": [39.0]}
    bound = {"figure": "measure.took_ms", "control_over_claim_at_least": 10}
    source = claim("fast", "slow", relations=(bound,))
    results, folder = theatre.play(plan_of((source, [experiment("fast"), experiment("slow")])))
    assert status_of_suite(results) == 1
    assert outcomes(folder) == ["violated"]
    assert results.rows[0].why == (
        "measure.took_ms: control over claim is 9.75, wanted at least 10"
    )


def test_a_claim_that_cannot_be_measured_is_shown_and_decides_nothing(theatre: Theatre) -> None:
    plan = plain(experiment("first"))
    source = RowSource(claim="it was so", article="the article", unavailable="no image\n")
    not_here = Row(source=source, experiment=None, control=None, names=())
    results, folder = theatre.play(
        replace(plan, suite=replace(plan.suite, rows=(*plan.suite.rows, not_here)))
    )
    assert results.verdict == Outcome.HELD
    last = results.rows[-1]
    assert (last.outcome_word, last.why) == ("not measured", "not measured: no image")
    assert rows(folder)[-1]["unavailable"] == "no image"


def test_progress_is_a_line_when_a_run_begins_and_one_when_it_ends(theatre: Theatre) -> None:
    theatre.play(plain(experiment("a"), experiment("b")))
    lines = [line.partition("] ")[2] for line in theatre.messages if line.startswith("[")]
    assert lines == [
        "1/2 a (row 1 claim, seed 0)",
        "1/2 a: held, as expected; 1 left",
        "2/2 b (row 2 claim, seed 0)",
        "2/2 b: held, as expected; 0 left",
    ]


def test_the_page_shows_claim_control_and_links_and_asks_for_nothing(theatre: Theatre) -> None:
    theatre.counts = {"fast": [4.0], "slow": [50.0]}
    source = claim("fast", "slow", figures=("measure.took_ms",), claim="<b>fast</b> & whole")
    results, folder = theatre.play(plan_of((source, [experiment("fast"), experiment("slow")])))
    page = folder.page.read_text("utf-8")
    for run in runs_of(theatre, results):
        assert f'href="../{run.run_id}/report.html"' in page
        assert (folder.path / f"../{run.run_id}/report.html").resolve().exists()
    assert "&lt;b&gt;fast&lt;/b&gt; &amp; whole" in page
    assert '<td class="number">4 ms</td><td class="number">50 ms</td>' in page
    assert page.count('class="figure"') == 1
    assert "http://" not in page.partition('id="library"')[0]
    assert Path(folder.page).stat().st_size > 100_000
