"""The last line of a command that ends with exit status 3 names what the status stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.sweep import SweepResult
from streamquake.harness import cli
from streamquake.harness.cli import compare, machine, program
from streamquake.harness.cli.guard import guarded
from streamquake.harness.cli.machine_check import ENGINE, MachineCheck
from streamquake.reports.comparison.comparison_results import (
    ComparedRun,
    ComparisonFolder,
    TopologyComparison,
)

RunCommand = Callable[..., tuple[int, list[str]]]
OWN_STATUS = re.compile(r"return 3\b|\bExitStatus\b|\bUNDECIDED\b")
"""How a command would end with status 3 past `no_verdict`, which prints the line."""
TWO = ("--topology", "flink-kafka-hdfs", "--topology", "flink-1-20-kafka-hdfs")


@pytest.fixture
def run_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunCommand:
    """Run the program in an empty folder: its status, and its lines on the standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CI", "1")

    def run(*argv: str) -> tuple[int, list[str]]:
        return guarded(program, argv), capsys.readouterr().err.splitlines()

    return run


def own_statuses(folder: Path) -> list[str]:
    """The modules of commands that end with status 3 by themselves."""
    modules = (path for path in folder.glob("*.py") if path.name != "guard.py")
    return sorted(path.name for path in modules if OWN_STATUS.search(path.read_text("utf-8")))


def test_no_command_ends_with_status_3_past_the_function_that_prints_the_line() -> None:
    (folder,) = cli.__path__

    assert len([*Path(folder).glob("*.py")]) > 10
    assert own_statuses(Path(folder)) == []


@pytest.mark.parametrize(
    "line", ["    return 3", "    return ExitStatus.UNDECIDED", "    return UNDECIDED"]
)
def test_a_command_with_a_status_of_its_own_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.py").write_text(f"def mine_command() -> int:\n{line}\n", "utf-8")

    assert own_statuses(tmp_path) == ["mine.py"]


@pytest.mark.parametrize("argv", [("doctor",), ("doctor", "--json")])
@pytest.mark.parametrize(
    ("problems", "cause"),
    [((ENGINE, "disk"), "engine missing"), (("disk", "leftovers"), "machine unsuitable")],
)
def test_doctor_names_what_the_machine_lacks(
    run_command: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    problems: tuple[str, ...],
    cause: str,
) -> None:
    # A note about the engine is no problem.
    found = [MachineCheck(what=ENGINE, verdict="note", finding="old")]
    found += [MachineCheck(what=each, verdict="problem", finding="bad") for each in problems]
    monkeypatch.setattr(machine, "examine", lambda runtime: found)

    assert run_command(*argv) == (3, [f"exit status 3: {cause}"])


def test_what_sweep_could_not_remove_is_a_failure_of_the_cluster(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = SweepResult(removed=(), failures=("network n: in use",))
    monkeypatch.setattr(DockerRuntime, "check", lambda runtime: None)
    monkeypatch.setattr(machine, "sweep", lambda runtime, everything: swept)

    assert run_command("sweep") == (
        3,
        ["not removed: network n: in use", "exit status 3: cluster failed"],
    )


@pytest.mark.parametrize("cause", ["undecided", "image failed"])
def test_compare_names_the_cause_of_its_runs(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cause: str
) -> None:
    runs = [ComparedRun(topology=t, results=None, why="", cause=cause) for t in ("a", "b")]
    comparison = TopologyComparison(
        comparison_id="x", experiment="quickstart", seed=1, runs=tuple(runs)
    )
    folder = ComparisonFolder(tmp_path / "compare-x")
    monkeypatch.setattr(compare, "hindrances", lambda runtime: ())
    monkeypatch.setattr(compare, "conduct", lambda experiments, means: (comparison, folder))

    assert run_command("compare", "quickstart", *TWO) == (3, [f"exit status 3: {cause}"])
