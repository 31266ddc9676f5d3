"""The command `suite`: its plan, its streams, its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.cli import program, suite
from streamquake.harness.cli.guard import guarded
from streamquake.harness.cli.machine_check import MachineCheck
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder

RunCommand = Callable[..., tuple[int, str, str]]
SUITE = """name: mine
rows:
  - {experiment: quickstart}
  - {experiment: canary}
"""


@pytest.fixture
def run_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunCommand:
    """Run the program in a folder that has a suite: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CI", "1")
    (tmp_path / "mine.yaml").write_text(SUITE, "utf-8")

    def run(*argv: str) -> tuple[int, str, str]:
        status = guarded(program, argv)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A runner that answers at once; experiment -> outcome, held unless given."""
    requested: dict[str, Any] = {"canary": Outcome.VIOLATED}

    def run(experiment: Experiment, *, out: Path, **options: Any) -> Results:
        requested.update(options)
        folder = RunFolder.create(out, f"20260101-00000{len([*out.glob('2026*')])}-abcd")
        return Results(
            run_id=folder.run_id,
            experiment=experiment.name,
            seed=experiment.seed,
            ended=requested.get("ended", "completed"),
            outcome=requested.get(experiment.name, Outcome.HELD),
            cause=requested.get("cause", ""),
            expected=ExpectedOutcome(outcome=experiment.expected.outcome),
        )

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(suite, "hindrances", lambda runtime: requested.get("hindrances", ()))
    return requested


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 0),
        ({"canary": Outcome.HELD}, 1),
        ({"quickstart": Outcome.VIOLATED}, 1),
        ({"quickstart": Outcome.UNDECIDED}, 3),
        ({"quickstart": Outcome.UNDECIDED, "canary": Outcome.HELD}, 1),
        ({"ended": "interrupted"}, 130),
    ],
)
def test_it_exits_by_what_was_expected(
    run_command: RunCommand, played: dict[str, Any], asked: dict[str, Any], status: int
) -> None:
    played.update(asked)
    assert run_command("suite", "mine.yaml")[0] == status


@pytest.mark.parametrize("cause", ["undecided", "cluster failed"])
def test_the_last_line_names_what_exit_status_3_stands_for(
    run_command: RunCommand, played: dict[str, Any], cause: str
) -> None:
    played.update(quickstart=Outcome.UNDECIDED, cause=cause)

    status, _, err = run_command("suite", "mine.yaml")

    assert (status, err.splitlines()[-1]) == (3, f"exit status 3: {cause}")


def test_a_run_that_could_not_begin_gives_the_suite_its_cause(
    run_command: RunCommand, played: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(experiment: Experiment, **options: Any) -> Results:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "run", fail)

    status, out, err = run_command("suite", "mine.yaml", "--json")

    assert (status, err.splitlines()[-1]) == (3, "exit status 3: machine unsuitable")
    assert json.loads(out)["rows"][0]["runs"][0]["cause"] == "machine unsuitable"


def test_the_seed_is_printed_first_and_the_command_last(
    run_command: RunCommand, played: dict[str, Any]
) -> None:
    status, out, _ = run_command("suite", "mine.yaml", "--seed", "7", "--only", "canary")
    lines = out.strip().splitlines()
    assert (status, lines[0]) == (0, "seed 7")
    assert lines[-1] == "again    streamquake suite mine.yaml --seed 7 --only canary"
    assert "AS EXPECTED  suite mine, seed 7" in lines
    assert any(line.split() == ["violated", "canary"] for line in lines)


def test_the_plan_is_printed_and_nothing_started(
    run_command: RunCommand, played: dict[str, Any]
) -> None:
    status, out, _ = run_command("suite", "claims", "--dry-run", "--seed", "3", "--repeats", "2")
    assert status == 0
    assert "kill-jobmanager (row 3 claim, seed 3) on flink-ha, expected held" in out
    assert "repeat 2, seed 4" in out
    status, out, _ = run_command("suite", "mine.yaml", "--dry-run", "--json")
    document = json.loads(out)
    assert [run["experiment"] for run in document["runs"]] == ["quickstart", "canary"]
    assert not Path("runs").exists()


def test_json_alone_is_on_standard_output(run_command: RunCommand, played: dict[str, Any]) -> None:
    status, out, err = run_command("suite", "mine.yaml", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["schema"] == 1
    assert [row["outcome"] for row in document["rows"]] == ["held", "violated"]
    (folder,) = Path("runs").glob("suite-*")
    assert json.loads((folder / "suite.json").read_text("utf-8")) == document
    assert "2/2 canary: violated, as expected; 0 left" in err


def test_what_hinders_runs_is_said_before_anything_starts(
    run_command: RunCommand, played: dict[str, Any]
) -> None:
    played["hindrances"] = (
        MachineCheck(what="docker", verdict="problem", finding="does not answer", next="start it"),
    )
    status, _, err = run_command("suite", "mine.yaml")
    assert (status, "docker: does not answer; start it" in err) == (3, True)
    assert err.splitlines()[-1] == "exit status 3: machine unsuitable"
    assert not Path("runs").exists()


def test_bad_suites_are_bad_input_for_suite_and_validate(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text(SUITE.replace("canary", "canari"), "utf-8")
    for command in ("suite", "validate"):
        status, _, err = run_command(command, "bad.yaml")
        assert status == 2
        assert 'bad.yaml:4: rows[1].experiment: no experiment is called "canari"' in err
    assert run_command("validate", "mine.yaml", "claims")[0] == 0


def test_suites_are_listed(run_command: RunCommand) -> None:
    status, out, _ = run_command("list", "suites", "--json")
    assert status == 0
    assert "claims" in [row["name"] for row in json.loads(out)["suites"]]
