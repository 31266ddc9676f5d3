"""`replay --exactly` and `--dry-run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.reports.record.event import Action
from streamquake.reports.record.run_folder import RunFolder
from tests.harness.conftest import RunCommand
from tests.harness.histories import Story


def recorded(out: Path, story: Story) -> RunFolder:
    """A record of the canary with these events."""
    folder = RunFolder.create(out, "20260101-000000-abcd")
    experiment = load_experiment("canary", seed=7)
    folder.write_manifest({"experiment": experiment_document(experiment), "seed": 7})
    lines = [{"schema": 1}, *(event.to_json() for event in story.history())]
    folder.history.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def killed() -> Story:
    story = Story().at(5, Action.PHASE, phase="disturb").checkpoint(3, 6, 7).checkpoint(4, 8, 9)
    return story.at(10.5, Action.FAULT_CALLED, step=0, fault="kill", nodes=["flink/taskmanager-3"])


def test_the_bound_plan_is_shown_and_nothing_is_started(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    folder = recorded(tmp_path, killed())
    status, out, _ = run_command("replay", str(folder.path), "--exactly", "--dry-run")
    assert status == 0
    assert (
        "- {kill: {}, target: flink/taskmanager-3, when: {event: checkpoint completed, nth: 2, "
        "delay_s: 1.5}, for_s: 5.0}"
    ) in out
    assert "experiment" not in fake_runner


def test_the_bound_plan_is_run(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    folder = recorded(tmp_path, killed())
    assert run_command("replay", str(folder.path), "--exactly", "--out", str(tmp_path))[0] == 0
    assert [each.target for each in fake_runner["experiment"].faults] == ["flink/taskmanager-3"]


def test_what_is_not_exact_is_printed(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    folder = recorded(tmp_path, Story().at(5, Action.PHASE, phase="disturb"))
    status, out, _ = run_command("replay", str(folder.path), "--exactly", "--dry-run")
    assert status == 0
    assert "not exact: step 1, kill on one of flink/taskmanager, is left out: the run did" in out


def test_a_node_that_the_plan_does_not_have_is_bad_input(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    story = Story().at(5, Action.PHASE, phase="disturb").checkpoint(3, 6, 7)
    story.at(8, Action.FAULT_CALLED, step=0, fault="kill", nodes=["flink/taskmanager-9"])
    folder = recorded(tmp_path, story)
    status, _, err = run_command("replay", str(folder.path), "--exactly", "--dry-run")
    assert (status, 'no node is called "flink/taskmanager-9"' in err) == (2, True)


def test_a_damaged_history_is_bad_input(
    run_command: RunCommand, tmp_path: Path, fake_runner: dict[str, Any]
) -> None:
    folder = recorded(tmp_path, killed())
    folder.history.write_text("no history\n")
    status, _, err = run_command("replay", str(folder.path), "--exactly", "--dry-run")
    assert (status, "the record cannot be read" in err) == (2, True)
