"""The command `suite`: its plan, its streams, its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.cli import suite
from streamquake.harness.cli.machine_check import MachineCheck
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from tests.harness.conftest import RunCommand

SUITE = """name: mine
rows:
  - {experiment: quickstart}
  - {experiment: canary}
"""


@pytest.fixture
def run_command(run_command: RunCommand, tmp_path: Path) -> RunCommand:
    """Run the program in a folder that has a suite: (status, stdout, stderr)."""
    (tmp_path / "mine.yaml").write_text(SUITE, "utf-8")
    return run_command


@pytest.fixture
def fake_runner(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A fake runner. Returns the mapping from an experiment to its outcome, which is held unless
    given."""
    settings: dict[str, Any] = {"canary": Outcome.VIOLATED}

    def run(experiment: Experiment, *, out: Path, **options: Any) -> Results:
        settings.update(options)
        folder = RunFolder.create(out, f"20260101-00000{len([*out.glob('2026*')])}-abcd")
        return Results(
            run_id=folder.run_id,
            experiment=experiment.name,
            seed=experiment.seed,
            ended=settings.get("ended", "completed"),
            outcome=settings.get(experiment.name, Outcome.HELD),
            cause=settings.get("cause", ""),
            expected=ExpectedOutcome(outcome=experiment.expected.outcome),
        )

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(suite, "hindrances", lambda runtime: settings.get("hindrances", ()))
    return settings


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 0),
        ({"canary": Outcome.HELD}, 1),
        ({"quickstart": Outcome.VIOLATED}, 1),
        ({"quickstart": Outcome.UNDECIDED}, 3),
        ({"quickstart": Outcome.UNDECIDED, "canary": Outcome.HELD}, 1),
        ({"ended": "interrupted"}, 130),
    ],
)
def test_the_exit_status_is_by_the_expected_outcomes(
    run_command: RunCommand, fake_runner: dict[str, Any], changed: dict[str, Any], status: int
) -> None:
    fake_runner.update(changed)
    assert run_command("suite", "mine.yaml")[0] == status


@pytest.mark.parametrize("cause", ["undecided", "cluster failed"])
def test_the_last_line_is_the_cause_of_exit_status_3(
    run_command: RunCommand, fake_runner: dict[str, Any], cause: str
) -> None:
    fake_runner.update(quickstart=Outcome.UNDECIDED, cause=cause)

    status, _, err = run_command("suite", "mine.yaml")

    assert (status, err.splitlines()[-1]) == (3, f"exit status 3: {cause}")


def test_the_suite_has_the_cause_of_a_run_that_could_not_start(
    run_command: RunCommand, fake_runner: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(experiment: Experiment, **options: Any) -> Results:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "run", fail)

    status, out, err = run_command("suite", "mine.yaml", "--json")

    assert (status, err.splitlines()[-1]) == (3, "exit status 3: machine unsuitable")
    assert json.loads(out)["rows"][0]["runs"][0]["cause"] == "machine unsuitable"


def test_the_seed_is_printed_first_and_the_command_last(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    status, out, _ = run_command("suite", "mine.yaml", "--seed", "7", "--only", "canary")
    lines = out.strip().splitlines()
    assert (status, lines[0]) == (0, "seed 7")
    assert lines[-1] == "again    streamquake suite mine.yaml --seed 7 --only canary"
    assert "AS EXPECTED  suite mine, seed 7" in lines
    assert any(line.split() == ["violated", "canary"] for line in lines)


def test_dry_run_prints_the_plan_and_starts_nothing(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    status, out, _ = run_command("suite", "claims", "--dry-run", "--seed", "3", "--repeats", "2")
    assert status == 0
    assert "kill-jobmanager (row 3 claim, seed 3) on flink-ha, expected held" in out
    assert "repeat 2, seed 4" in out
    status, out, _ = run_command("suite", "mine.yaml", "--dry-run", "--json")
    document = json.loads(out)
    assert [run["experiment"] for run in document["runs"]] == ["quickstart", "canary"]
    assert not Path("runs").exists()


def test_a_shard_is_a_part_of_the_rows(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    shown = []
    for shard in ("1/2", "2/2"):
        status, out, _ = run_command("suite", "mine.yaml", "--shard", shard, "--dry-run", "--json")
        assert status == 0
        shown += [run["experiment"] for run in json.loads(out)["runs"]]
    assert sorted(shown) == ["canary", "quickstart"]
    _, out, _ = run_command("suite", "mine.yaml", "--shard", "1/2", "--seed", "1")
    assert out.strip().endswith("again    streamquake suite mine.yaml --seed 1 --shard 1/2")


def test_only_comes_before_shards(run_command: RunCommand, fake_runner: dict[str, Any]) -> None:
    options = ("--only", "canary", "--dry-run", "--json")
    status, out, _ = run_command("suite", "mine.yaml", "--shard", "1/1", *options)
    assert (status, len(json.loads(out)["runs"])) == (0, 1)
    status, _, err = run_command("suite", "mine.yaml", "--shard", "2/2", *options)
    assert status == 2
    assert "it can be split into at most 1" in err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--shard", "3/2"], 'expected K/N with K from 1 to N, such as 2/6, got "3/2"'),
        (["--shard", "0/2"], "expected K/N with K from 1 to N"),
        (["--shard", "two"], "expected K/N with K from 1 to N"),
        (["--shard", "3/3"], "shard 3/3 of mine is empty"),
        (["--for", "0h"], "expected a number and a unit"),
        (["--for", "1h", "--repeats", "3"], "--for decides itself how often to repeat"),
        (["--for", "1h", "--resume"], "--for decides itself how often to repeat"),
        (["--max-failures", "0"], "0 is not in the range x>=1"),
        (["--against", "yesterday"], "expected a day such as 2026-11-20"),
    ],
)
def test_wrong_limits_are_bad_input(
    run_command: RunCommand, fake_runner: dict[str, Any], options: list[str], problem: str
) -> None:
    status, _, err = run_command("suite", "mine.yaml", *options)

    assert status == 2
    assert problem in err
    assert not Path("runs").exists()


def test_a_budget_is_repeated_by_its_command(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    status, out, err = run_command("suite", "mine.yaml", "--for", "1m", "--seed", "1")

    assert status == 3, "no run fits into a minute"
    assert err.splitlines()[-1] == "exit status 3: undecided"
    assert out.strip().endswith("again    streamquake suite mine.yaml --seed 1 --for 60s")


def test_only_json_is_on_standard_output(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    status, out, err = run_command("suite", "mine.yaml", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["schema"] == 1
    assert [row["outcome"] for row in document["rows"]] == ["held", "violated"]
    (folder,) = Path("runs").glob("suite-*")
    assert json.loads((folder / "suite.json").read_text("utf-8")) == document
    assert "2/2 canary: violated, as expected; 0 left" in err


def test_problems_of_the_machine_are_reported_before_anything_starts(
    run_command: RunCommand, fake_runner: dict[str, Any]
) -> None:
    fake_runner["hindrances"] = (
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
