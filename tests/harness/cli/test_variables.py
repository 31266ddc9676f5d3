"""Options as environment variables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from streamquake.harness.cli import COMMANDS, program
from streamquake.harness.cli.guard import DEBUG, guarded
from streamquake.harness.cli.variables import with_variables
from tests.harness.conftest import RunCommand


def options() -> Iterator[tuple[str, click.Option]]:
    for name in COMMANDS:
        command = program.get_command(click.Context(program), name)
        assert command is not None
        yield from ((name, each) for each in command.params if isinstance(each, click.Option))


def test_every_option_has_a_variable_of_its_own_with_its_visible_name() -> None:
    found = {
        f"STREAMQUAKE_{name}_{max(option.opts, key=len)[2:].replace('-', '_')}".upper(): option
        for name, option in options()
    }

    assert len(found) == len([*options()]) > 60
    assert {name: option.envvar for name, option in found.items()} == {name: name for name in found}
    assert DEBUG not in found


def test_a_run_takes_its_options_from_the_environment(
    run_command: RunCommand,
    fake_runner: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for option, value in (
        ("SEED", "7"),
        ("SET", "job.parallelism=1 workload.numbered.keys=5"),
        ("OUT", "elsewhere"),
        ("KEEP", "true"),
        ("MASTER", "local[1]"),
        ("JSON", "1"),
    ):
        monkeypatch.setenv(f"STREAMQUAKE_RUN_{option}", value)

    status, out, _ = run_command("run", "quickstart")
    experiment = fake_runner["experiment"]

    assert (status, json.loads(out)["seed"]) == (0, 7)
    assert (experiment.job.parallelism, experiment.workload.keys) == (1, 5)
    assert (fake_runner["keep"], fake_runner["master"]) == (True, "local[1]")
    assert len([*(tmp_path / "elsewhere").glob("2026*")]) == 1


def test_an_option_takes_precedence_and_an_empty_variable_is_none(
    run_command: RunCommand, fake_runner: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMQUAKE_RUN_SEED", "7")
    monkeypatch.setenv("STREAMQUAKE_RUN_KEEP", "")

    run_command("run", "quickstart", "--seed", "8")

    assert (fake_runner["experiment"].seed, fake_runner["keep"]) == (8, False)


def test_a_needed_option_may_be_a_variable(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command("prune")[0] == 2
    monkeypatch.setenv("STREAMQUAKE_PRUNE_KEEP", "3")
    assert run_command("prune")[0] == 0


def test_a_wrong_value_of_a_variable_is_reported_with_its_name(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command("run", "quickstart", "--seed", "x")[2].splitlines()[-1].startswith("Error: ")

    monkeypatch.setenv("STREAMQUAKE_RUN_SEED", "x")
    status, _, err = run_command("run", "quickstart")

    assert (status, err.splitlines()[-1]) == (2, "the value is from STREAMQUAKE_RUN_SEED")


@pytest.mark.parametrize(
    "name", ["STREAMQUAKE_VERSION", "STREAMQUAKE_HELP", "STREAMQUAKE_RUN_HELP"]
)
def test_no_variable_replaces_a_command_by_the_version_or_the_help(
    run_command: RunCommand,
    fake_runner: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv(name, "1")

    run_command("run", "quickstart", "--seed", "8")

    assert fake_runner["experiment"].seed == 8


def test_help_shows_the_variables_that_a_machine_sets_once(run_command: RunCommand) -> None:
    text = " ".join(run_command("run", "--help")[1].split())

    assert "[env var: STREAMQUAKE_RUN_OUT; default: runs]" in text
    assert "[env var: STREAMQUAKE_RUN_MASTER; default: local[*]]" in text
    assert text.count("env var") == 2
    assert "STREAMQUAKE_COMMAND_OPTION" in run_command("--help")[1]


def test_the_commands_of_a_group_have_variables_with_both_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    option = click.Option(["--dry-run", "dry"], is_flag=True)
    below = click.Command("build", params=[option], callback=lambda dry: seen.append(dry))
    group = with_variables(click.Group("images", commands={"build": below}), "images")
    monkeypatch.setenv("STREAMQUAKE_IMAGES_BUILD_DRY_RUN", "yes")

    guarded(group, ["build"])

    assert seen == [True]
