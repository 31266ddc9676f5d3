"""The command `shrink`: its inputs, its exit status and what it prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.shared_resources import RunAttempt, SharedResources
from streamquake.harness.cli import shrink
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.recorded import Recorded
from streamquake.reports.record.event import Action
from streamquake.reports.record.run_folder import RunFolder
from tests.harness.campaign.shrinking.planted import document, pauses, results_of
from tests.harness.conftest import RunCommand
from tests.harness.histories import Story

pytestmark = pytest.mark.slow


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """The experiments that were tried. Those with a step at 2 s lose records."""
    experiments: list[Experiment] = []

    def run(self: SharedResources, experiment: Experiment, leases: Any = None) -> RunAttempt:
        experiments.append(experiment)
        self.clock.restart()
        fails = any(step.when.after_s == 2 for step in experiment.faults)
        run_id = f"run-{len(experiments)}"
        return RunAttempt(results=results_of(run_id, experiment, fails, "completed"))

    monkeypatch.setattr(SharedResources, "run", run)
    monkeypatch.setattr(shrink, "hindrances", lambda runtime: ())
    return experiments


def recorded(out: Path, fails: bool | None = True, **fields: Any) -> RunFolder:
    """A record of a run in which records were lost, or not."""
    folder = RunFolder.create(out, "20260101-000000-abcd")
    steps = [{**step, "target": "one of kafka/broker"} for step in pauses(1.0, 2.0, 3.0)]
    experiment = experiment_of_plan(document(**{"faults": steps, **fields}), "planted")
    folder.write_manifest({"experiment": experiment_document(experiment), "seed": 7})
    folder.write_results(replace(results_of(folder.run_id, experiment, fails, "completed")))
    story = Story()
    for number in range(3):
        nodes = [f"kafka/broker-{number + 1}"]
        story.at(number + 1, Action.FAULT_CALLED, step=number, fault="pause", nodes=nodes)
    lines = [{"schema": 1}, *(event.to_json() for event in story.history())]
    folder.history.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def test_the_smallest_experiment_is_found_and_printed(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    folder = recorded(tmp_path)
    status, out, _ = run_command("shrink", "latest", "--out", str(tmp_path))
    smallest = tmp_path / f"shrink-{folder.run_id}" / "smallest.yaml"
    assert (status, smallest.exists()) == (0, True)
    assert out.startswith("planted: exactly_once finds lost, in the run 20260101-000000-abcd")
    assert "SMALLEST EXPERIMENT FOUND" in out
    assert "2 of 3 steps: 1 pause on kafka/broker-1; 3 pause on kafka/broker-3" in out
    assert f"streamquake run {smallest}" in out
    assert "fails in 3 of 3" in out
    targets = {step.target for experiment in tried for step in experiment.faults}
    assert targets == {f"kafka/broker-{n}" for n in (1, 2, 3)}, "those that the run drew"


def test_the_results_as_json(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    recorded(tmp_path)
    status, out, _ = run_command("shrink", "latest", "--out", str(tmp_path), "--json")
    results = json.loads(out)
    assert (status, results["is_smallest"], results["rate"]["count"]) == (0, True, 3)
    assert results["runs_made"] == len(tried)
    assert {"fails", "passes"} == {
        run["outcome"] for each in results["candidates"] for run in each["runs"]
    }


def test_a_failure_that_does_not_appear_again_is_status_3(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    recorded(tmp_path, faults=pauses(1.0))
    status, out, err = run_command("shrink", "latest", "--out", str(tmp_path))
    assert (status, "NOT REPRODUCED" in out) == (3, True)
    assert err.endswith("exit status 3: undecided\n")


@pytest.mark.parametrize(
    ("fails", "message"), [(False, "the run is held"), (None, "the run is undecided")]
)
def test_a_run_without_a_failure_has_nothing_to_shrink(
    run_command: RunCommand,
    tmp_path: Path,
    tried: list[Experiment],
    fails: bool | None,
    message: str,
) -> None:
    recorded(tmp_path, fails)
    status, _, err = run_command("shrink", "latest", "--out", str(tmp_path))
    assert (status, f"nothing to shrink: {message}, and no check is violated" in err) == (2, True)
    assert tried == []


def test_more_needed_failures_than_tries_are_bad_input(
    run_command: RunCommand, tmp_path: Path
) -> None:
    recorded(tmp_path)
    argv = ("shrink", "latest", "--out", str(tmp_path), "--tries", "4")
    status, _, err = run_command(*argv)
    assert (status, "--tries 4 must be at most --of 3" in err) == (2, True)


@pytest.mark.parametrize("file", ["run.json", "results.json", "history.jsonl"])
@pytest.mark.parametrize("damage", ["", "{", "[]\n", "null\n"])
def test_a_damaged_record_is_bad_input(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment], file: str, damage: str
) -> None:
    folder = recorded(tmp_path)
    (folder.path / file).write_text(damage)
    status, _, err = run_command("shrink", str(folder.path), "--out", str(tmp_path))
    assert (status, "cannot be read" in err or "expected" in err, tried) == (2, True, []), err


def test_a_run_that_was_not_judged_is_bad_input(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    folder = recorded(tmp_path)
    folder.results.unlink()
    status, _, err = run_command("shrink", "latest", "--out", str(tmp_path))
    assert (status, f"streamquake check {folder.path}" in err) == (2, True)


def test_a_program_of_a_record_is_not_started_unless_allowed(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    recorded(tmp_path, checks=["exactly_once", {"command": {"run": ["rm", "-rf", "a b"]}}])
    argv = ("shrink", "latest", "--out", str(tmp_path))
    status, _, err = run_command(*argv)
    assert (status, "it runs `rm -rf 'a b'` on this machine" in err, tried) == (2, True, [])
    assert run_command(*argv, "--run-commands")[0] == 0


def test_a_secret_must_be_given_again_and_is_not_written(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    services = {
        "kafka": {"engine": "kafka", "nodes": {"broker": {"count": 3, "env": {"TOKEN": "abc"}}}}
    }
    folder = recorded(tmp_path, topology={"name": "mine", "services": services})
    argv = ("shrink", "latest", "--out", str(tmp_path))
    secret = "topology.services.kafka.nodes.broker.env.TOKEN"
    status, _, err = run_command(*argv)
    assert (status, f"give it again, as --set {secret}=VALUE" in err) == (2, True)
    assert run_command(*argv, "--set", f"{secret}=hunter3")[0] == 0
    broker = tried[0].topology.services["kafka"].nodes["broker"]
    assert broker.env == {"TOKEN": "hunter3"}
    written = [*(tmp_path / f"shrink-{folder.run_id}").iterdir(), *tmp_path.glob("*.jsonl")]
    assert len(written) >= 5
    assert not [path for path in written if "hunter3" in path.read_text("utf-8")]


def test_records_of_a_file_are_sent_again_by_the_smallest_experiment(
    run_command: RunCommand, tmp_path: Path, tried: list[Experiment]
) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_text('{"id": 1}\n{"id": 2}\n')
    load = Recorded(file=str(file), rate_per_s=1).with_files(Path)
    folder = recorded(tmp_path, workload={"recorded": load.model_dump(mode="json")}, checks=[])
    load.store(folder.data, 7)
    file.unlink()
    status, _, err = run_command("shrink", "latest", "--out", str(tmp_path))
    assert (status, err) == (0, "")
    smallest = load_experiment(str(tmp_path / f"shrink-{folder.run_id}" / "smallest.yaml"))
    assert isinstance(smallest.workload, Recorded)
    assert smallest.workload.data_set(7).lines == [b'{"id": 1}', b'{"id": 2}']
