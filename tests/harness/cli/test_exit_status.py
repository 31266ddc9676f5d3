"""The last line of a command with exit status 3 is the cause of this status."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.sweep import SweepResult
from streamquake.harness import cli
from streamquake.harness.cli import compare, machine
from streamquake.harness.cli.machine_check import ENGINE, MachineCheck
from streamquake.reports.comparison.comparison_results import (
    ComparedRun,
    ComparisonFolder,
    TopologyComparison,
)
from tests.harness.conftest import RunCommand as WholeOutput

RunCommand = Callable[..., tuple[int, list[str]]]
DIRECT_STATUS = re.compile(r"return 3\b|\bExitStatus\b|\bUNDECIDED\b")
"""Code with which a command would return status 3 without `no_verdict`, which prints the line."""
TWO = ("--topology", "flink-kafka-hdfs", "--topology", "flink-1-20-kafka-hdfs")


@pytest.fixture
def run_command(run_command: WholeOutput) -> RunCommand:
    """Run the program in an empty folder: its status, and its lines on the standard error."""

    def run(*argv: str) -> tuple[int, list[str]]:
        status, _, err = run_command(*argv)
        return status, err.splitlines()

    return run


def modules_with_direct_status(folder: Path) -> list[str]:
    """The modules of commands that return status 3 without `no_verdict`."""
    modules = (path for path in folder.glob("*.py") if path.name != "guard.py")
    return sorted(path.name for path in modules if DIRECT_STATUS.search(path.read_text("utf-8")))


def test_no_command_returns_status_3_without_the_function_that_prints_the_line() -> None:
    (folder,) = cli.__path__

    assert len([*Path(folder).glob("*.py")]) > 10
    assert modules_with_direct_status(Path(folder)) == []


@pytest.mark.parametrize(
    "line", ["    return 3", "    return ExitStatus.UNDECIDED", "    return UNDECIDED"]
)
def test_a_command_that_returns_status_3_directly_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "mine.py").write_text(f"def mine_command() -> int:\n{line}\n", "utf-8")

    assert modules_with_direct_status(tmp_path) == ["mine.py"]


@pytest.mark.parametrize("argv", [("doctor",), ("doctor", "--json")])
@pytest.mark.parametrize(
    ("problems", "cause"),
    [((ENGINE, "disk"), "engine missing"), (("disk", "leftovers"), "machine unsuitable")],
)
def test_doctor_has_the_cause_of_the_problems_of_the_machine(
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


def test_a_sweep_with_leftovers_has_the_cause_cluster_failed(
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
def test_compare_has_the_cause_of_its_runs(
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
