"""The files for CI systems and systemd: they parse, and run the same script with known commands."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from streamquake.harness.cli import COMMANDS, program

FOLDER = Path(__file__).parents[1] / "examples" / "nightly"
SCRIPT = FOLDER / "night.sh"
CALL = re.compile(r"night\.sh claims (\S+)")


def commands(text: str) -> list[list[str]]:
    """The calls of the program in a script, as words."""
    code = (line.partition(" #")[0] for line in text.splitlines() if not line.startswith("#"))
    calls = (re.search(r"(?:^|\s|/)streamquake (.*?)(?:$|\|\|)", line) for line in code)
    return [call[1].split() for call in calls if call is not None]


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_every_command_and_option_is_known(path: Path) -> None:
    for name, *words in commands(path.read_text("utf-8")):
        assert name in COMMANDS
        command = program.get_command(click.Context(program), name)
        assert command is not None
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_the_script_is_correct_and_shows_its_commands() -> None:
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    names = [name for name, *_ in commands(SCRIPT.read_text("utf-8"))]
    assert names == ["doctor", "sweep", "suite", "results", "prune"]


def test_the_script_needs_a_suite() -> None:
    called = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert called.returncode != 0
    assert "name a suite" in called.stderr


def night(folder: Path, **statuses: int) -> subprocess.CompletedProcess[str]:
    """Run the script with a program that ends with these statuses, by command. The suite leaves a
    folder unless it is bad input or the machine is unsuitable (4 here)."""
    binaries = folder / "bin"
    binaries.mkdir()
    cases = "".join(f"{name}) exit {status};;" for name, status in statuses.items())
    program = binaries / "streamquake"
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = suite ] && [ {statuses.get("suite", 0)} -lt 2 ]; then\n'
        "  mkdir -p out/suite-2 && echo tonight > out/suite-2/suite.md\n"
        "  echo tonight > out/suite-2/junit.xml\nfi\n"
        f'case "$1" in {cases} esac\n'
    )
    program.chmod(0o755)
    earlier = folder / "out" / "suite-1"
    earlier.mkdir(parents=True)
    for name in ("suite.md", "junit.xml"):
        (earlier / name).write_text("yesterday")
    os.utime(earlier, (1, 1))
    for name in ("summary.md", "junit.xml"):
        (folder / "out" / name).write_text("yesterday")
    return subprocess.run(
        ["bash", str(SCRIPT), "mine", "out"],
        cwd=folder,
        env={**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("statuses", "status", "published"),
    [
        ({}, 0, "tonight\n"),
        ({"suite": 1}, 1, "tonight\n"),
        ({"suite": 1, "results": 2}, 1, "tonight\n"),
        ({"suite": 0, "prune": 3}, 0, "tonight\n"),
        ({"suite": 3}, 3, None),
        ({"suite": 2}, 2, None),
        ({"doctor": 3}, 3, None),
    ],
)
def test_the_script_ends_as_the_suite_and_publishes_only_this_night(
    tmp_path: Path, statuses: dict[str, int], status: int, published: str | None
) -> None:
    done = night(tmp_path, **statuses)
    assert done.returncode == status, done.stderr
    for name in ("summary.md", "junit.xml"):
        path = tmp_path / "out" / name
        assert (path.read_text() if path.exists() else None) == published


def test_the_runs_of_a_night_that_failed_are_kept() -> None:
    steps = workflow("github-actions.yml")["jobs"]["night"]["steps"]
    (saved,) = [step for step in steps if step.get("uses", "").startswith("actions/cache/save")]
    assert saved["if"] == "always()"


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return found


def test_the_ci_systems_run_the_script_and_always_clean_up() -> None:
    steps = workflow("github-actions.yml")["jobs"]["night"]["steps"]
    assert [CALL.search(step["run"])[1] for step in steps if "night.sh" in step.get("run", "")] == [  # type: ignore[index]
        "runs"
    ]
    assert steps[-1] == {"if": "always()", "run": "streamquake sweep"}
    job = workflow("gitlab-ci.yml")["chaos night"]
    assert CALL.search(job["script"][0])
    assert job["after_script"] == [".venv/bin/streamquake sweep"]
    assert job["artifacts"]["reports"] == {"junit": "runs/junit.xml"}


def test_the_service_runs_the_script_and_the_timer_starts_it() -> None:
    service, timer = configparser.RawConfigParser(), configparser.RawConfigParser()
    service.read(FOLDER / "chaos-night.service")
    timer.read(FOLDER / "chaos-night.timer")
    assert CALL.search(service["Service"]["ExecStart"])
    assert service["Service"]["ExecStopPost"].endswith("streamquake sweep")
    assert timer["Timer"]["OnCalendar"] == "*-*-* 01:15:00"
