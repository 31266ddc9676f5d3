"""`--json` of `run`, `replay` and `check`: the standard output is one document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.cli import records
from streamquake.harness.cli.machine_check import MachineCheck
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.record.run_folder import RunFolder
from tests.harness.conftest import RunCommand


def document_of(folder: Path) -> dict[str, Any]:
    """The document that a command prints about a run."""
    results = json.loads((folder / "results.json").read_text("utf-8"))
    return {"folder": str(folder), **results}


@pytest.mark.parametrize(
    ("outcome", "ended", "status"),
    [
        (Outcome.HELD, "completed", 0),
        (Outcome.VIOLATED, "completed", 1),
        (Outcome.UNDECIDED, "failed_to_run", 3),
        (Outcome.UNDECIDED, "interrupted", 130),
    ],
)
def test_run_prints_its_results_and_its_folder(
    run_command: RunCommand,
    fake_runner: dict[str, Any],
    tmp_path: Path,
    outcome: Outcome,
    ended: Ended,
    status: int,
) -> None:
    fake_runner.update(outcome=outcome, ended=ended, message="starting")

    found, out, err = run_command("run", "quickstart", "--seed", "5", "--json")

    assert found == status
    assert json.loads(out) == document_of(tmp_path / "runs" / "20260101-000000-abcd")
    assert err.splitlines()[0] == "seed 5"
    assert err.splitlines()[1].endswith("s]   starting")


def test_without_json_the_progress_is_on_the_standard_output(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    fake_runner["message"] = "starting"

    _, out, err = run_command("run", "quickstart", "--seed", "5")

    assert out.splitlines()[1].endswith("s]   starting")
    assert err == ""


def test_replay_prints_the_results_of_the_new_run(
    run_command: RunCommand, fake_runner: dict[str, Any], tmp_path: Path
) -> None:
    run_command("run", "quickstart", "--seed", "5")

    status, out, err = run_command("replay", "latest", "--json")

    assert status == 0
    assert json.loads(out) == document_of(tmp_path / "runs" / "20260101-000001-abcd")
    assert err.splitlines()[0] == "seed 5"


def test_a_run_that_cannot_start_prints_no_document(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    fake_runner["hindrances"] = (
        MachineCheck(what="Java", verdict="problem", finding="not found", next="install Java 17"),
    )

    status, out, err = run_command("run", "quickstart", "--json")

    assert (status, out) == (3, "")
    assert err.splitlines()[-1] == "exit status 3: machine unsuitable"


def test_dry_run_prints_the_plan_without_its_secrets(run_command: RunCommand) -> None:
    secret = "job.config.security.ssl.key-password=hunter2"

    status, out, err = run_command(
        "run", "quickstart", "--seed", "5", "--set", secret, "--dry-run", "--json"
    )
    plan = json.loads(out)

    assert (status, err) == (0, "")
    assert (plan["name"], plan["seed"]) == ("quickstart", 5)
    assert plan["job"]["config"]["security.ssl.key-password"] == "***"


class NoSpark:
    """In place of Spark, which a judgement of a test does not need."""

    def __init__(self, master: str) -> None: ...

    def get(self) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.HELD, 0), (Outcome.VIOLATED, 1)])
def test_check_prints_the_results_of_its_judgement(
    run_command: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    outcome: Outcome,
    status: int,
) -> None:
    plan = experiment_document(load_experiment("quickstart", seed=1))
    folder = RunFolder.create(tmp_path / "runs", "20260101-000000-abcd")
    folder.write_manifest({"experiment": plan, "seed": 1})

    def judge_again(folder: RunFolder, spark: Any, show_message: Callable[[str], None]) -> Results:
        show_message("judging")
        return Results(
            run_id=folder.run_id,
            experiment="quickstart",
            seed=1,
            ended="completed",
            outcome=outcome,
        )

    monkeypatch.setattr(records, "SparkInBackground", NoSpark)
    monkeypatch.setattr(records, "judge_again", judge_again)
    monkeypatch.setattr(records, "save", lambda results, folder, stored: None)

    found, out, err = run_command("check", "latest", "--json")
    document = json.loads(out)

    assert (found, err) == (status, "judging\n")
    assert document["folder"] == str(folder.path)
    assert (document["outcome"], document["run_id"]) == (str(outcome), folder.run_id)
