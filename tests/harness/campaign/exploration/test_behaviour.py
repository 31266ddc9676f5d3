"""What of a run counts as behaviour: errors by role, states, magnitudes of recovery, findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from streamquake.harness.campaign.exploration.behaviour import behaviour_of
from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.results import FaultRecovery, Results
from streamquake.reports.record.run_folder import RunFolder

LOST = "2026-11-28T19:01:42.000Z WARN  Task - failed\njava.io.IOException: {}\n\tat a.B.c(B:1)\n"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "run")


def results(*checks: CheckResult, recovery: Mapping[str, float | None] | None = None) -> Results:
    recoveries = (FaultRecovery(fault="kill", step=0, phases=recovery),) if recovery else ()
    return Results(
        run_id="run",
        experiment="e",
        seed=1,
        ended="completed",
        outcome=Outcome.HELD,
        checks=checks,
        recoveries=recoveries,
    )


def record(folder: RunFolder, *actions: Action) -> None:
    writer = HistoryWriter(folder.history)
    for number, action in enumerate(actions):
        writer.append(
            EventDraft(
                at_ns=number, process="flink", kind=Kind.INFO, action=action, value={"job": "j"}
            )
        )
    writer.close()


def test_errors_count_by_role_and_signature(folder: RunFolder) -> None:
    for node, text in {"tm-1": "lost 7", "tm-2": "lost 8", "jm-1": "lost 9"}.items():
        (folder.logs / node).mkdir()
        (folder.logs / node / "log.txt").write_text(LOST.format(text))
    (folder.logs / "tm-3").mkdir()
    (folder.logs / "tm-3" / "log.txt").write_text("it runs\n")
    assert behaviour_of(folder, results()) == {
        "tm logged java.io.IOException at a.B.c",
        "jm logged java.io.IOException at a.B.c",
    }


def test_the_states_of_the_job_count_in_their_order(folder: RunFolder) -> None:
    record(
        folder,
        Action.JOB_SUBMITTED,
        Action.JOB_RUNNING,
        Action.SENT,
        Action.JOB_FAILING,
        Action.JOB_FAILING,
        Action.JOB_RESTARTING,
        Action.JOB_RESTORED,
    )
    assert behaviour_of(folder, results()) == {
        "job running > job failing > job restarting > job restored"
    }


def test_a_loop_of_restarts_is_one_behaviour(folder: RunFolder) -> None:
    record(folder, *[Action.JOB_FAILING, Action.JOB_RESTARTING] * 30)
    (states,) = behaviour_of(folder, results())
    assert states.count(">") == 11


@pytest.mark.parametrize(
    ("seconds", "behaviour"),
    [
        (3.1, {"recovery from kill within 4 s"}),
        (4.0, {"recovery from kill within 4 s"}),
        (4.1, {"recovery from kill within 8 s"}),
        (0.3, {"recovery from kill within 0.5 s"}),
        (0.0, set()),
        (None, set()),
    ],
)
def test_a_recovery_counts_by_its_magnitude(
    folder: RunFolder, seconds: float | None, behaviour: set[str]
) -> None:
    assert behaviour_of(folder, results(recovery={"restarted_s": seconds})) == behaviour


def test_findings_of_checks_that_are_not_held_count(folder: RunFolder) -> None:
    found = (Finding(what="lost, of key 3"), Finding(what="duplicated"), Finding(what="lost"))
    checks = (
        CheckResult(check="exactly_once", outcome=Outcome.VIOLATED, summary="s", findings=found),
        CheckResult(check="progress", outcome=Outcome.UNDECIDED, summary="s"),
        CheckResult(check="effect", outcome=Outcome.HELD, summary="s"),
    )
    assert behaviour_of(folder, results(*checks)) == {
        "exactly_once violated duplicated, lost",
        "progress undecided",
    }
