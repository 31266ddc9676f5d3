"""`init`: a new project is valid as it is, and nothing is overwritten."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from streamquake.harness.cli import COMMANDS, program
from streamquake.harness.experiment.loader import EXPERIMENTS, load_experiment
from streamquake.harness.project.project import FILES, TEMPLATES
from streamquake.topologies.named_files import JOBS, SHIPPED, shipped_names
from tests.harness.conftest import RunCommand

DOCUMENTS = sorted(name for name in FILES if name.endswith(".yaml"))


def content(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


def test_every_template_is_written_and_named(run_command: RunCommand, tmp_path: Path) -> None:
    status, out, _ = run_command("init")

    assert status == 0
    assert content(tmp_path).keys() == FILES.keys()
    assert out.splitlines()[: len(FILES)] == [f"{name}: written" for name in FILES]
    assert {path.name for path in TEMPLATES.iterdir()} == {*FILES.values()}


def test_every_document_of_a_new_project_is_valid(run_command: RunCommand) -> None:
    run_command("init")

    assert run_command("validate", *DOCUMENTS)[:2] == (
        0,
        "".join(f"{name}: valid\n" for name in DOCUMENTS),
    )


def test_the_experiment_reads_the_files_of_the_project(run_command: RunCommand) -> None:
    """A shipped file of the same name would take precedence, and changes would have no effect."""
    run_command("init")

    experiment = load_experiment("chaos/lose-a-worker.yaml")

    assert experiment.job is not None
    assert experiment.job.sql == Path("chaos/first-job.sql").read_text("utf-8")
    assert [*experiment.promise.outputs] == ["first-copies"]
    assert experiment.topology.name == "first-cluster"
    for folder, suffix in ((SHIPPED, ".yaml"), (EXPERIMENTS, ".yaml"), (JOBS, ".sql")):
        assert not {Path(name).stem for name in FILES} & {*shipped_names(folder, suffix)}


def test_the_next_steps_are_commands_on_its_files(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = run_command("init", "my project")[1]
    assert "  cd 'my project'\n" in out
    monkeypatch.chdir("my project")

    calls = re.findall(r"^  streamquake (\S+)(.*?)(?:#|$)", out, flags=re.MULTILINE)

    assert [name for name, _ in calls] == ["doctor", "validate", "run", "suite"]
    assert all(Path(word).exists() for _, words in calls for word in words.split())
    assert run_command("validate", *calls[1][1].split())[0] == 0
    assert run_command("suite", "chaos", "--dry-run")[0] == 0


def test_a_second_project_is_refused_and_names_every_file(
    run_command: RunCommand, tmp_path: Path
) -> None:
    run_command("init")
    (tmp_path / "chaos" / "first-job.sql").write_text("SELECT 1")
    before = content(tmp_path)

    status, out, err = run_command("init")

    assert (status, out) == (2, "")
    assert err.splitlines() == [f"{name}: it exists already; nothing was written" for name in FILES]
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("obstacle", "target"),
    [("chaos/test_chaos.py", None), ("chaos", None), ("chaos/first-job.sql", "nowhere")],
)
def test_one_obstacle_is_enough_to_write_nothing(
    obstacle: str, target: str | None, run_command: RunCommand, tmp_path: Path
) -> None:
    place = tmp_path / obstacle
    place.parent.mkdir(exist_ok=True)
    if target is None:
        place.write_text("mine")
    else:
        place.symlink_to(target)

    status, _, err = run_command("init")

    assert status == 2
    assert [line.split(":")[0] for line in err.splitlines()] == [obstacle]
    assert not (tmp_path / ".github").exists()
    assert content(tmp_path) == ({obstacle: "mine"} if target is None else {})


def test_a_folder_that_is_a_file_is_bad_input(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")

    assert run_command("init", "taken")[0] == 2
    status, _, err = run_command("init", "taken/below")
    assert (status, err.strip()) == (2, "taken: it is no folder; nothing was written")


def test_a_name_that_no_folder_can_have_is_bad_input(
    run_command: RunCommand, tmp_path: Path
) -> None:
    status, _, err = run_command("init", str(tmp_path / ("x" * 300)))
    assert status == 2
    assert "the project cannot be written: File name too long" in err
    assert not any(tmp_path.iterdir())


def test_the_night_calls_known_commands_with_known_options(run_command: RunCommand) -> None:
    run_command("init")
    night: Any = yaml.safe_load(Path(".github/workflows/chaos-night.yml").read_text("utf-8"))
    lines = [step["run"] for step in night["jobs"]["night"]["steps"] if "run" in step]
    calls = [line.split()[1:] for line in lines if line.startswith("streamquake ")]

    assert [call[0] for call in calls] == ["doctor", "suite", "results", "prune", "sweep"]
    for name, *words in calls:
        assert name in COMMANDS
        command = program.get_command(click.Context(program), name)
        assert command is not None
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
    assert Path(calls[1][1]).is_dir()
