"""A shrink on a real broker: of three steps the one that loses records is left, and a replay of the
run injects it into the same node at the same record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.loader import load_experiment

pytestmark = [pytest.mark.container, pytest.mark.nightly]

PADDED = """
base: canary-power-loss
name: padded-power-loss
workload: {numbered: {records: 16000, rate_per_s: 2000, keys: 64}}
faults:
  - {surge: {factor: 1.2}, target: the workload, when: {at_record: 500}, for_s: 0.5}
  - {lose_unflushed_log: {}, target: one of kafka/broker, when: {at_record: 4000}, for_s: 2}
  - {late_events: {late_ms: 500}, target: the workload, when: {at_record: 12000}, for_s: 0.5}
"""


def streamquake(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamquake", *argv],
        capture_output=True,
        text=True,
        timeout=2400,
        check=False,
    )


def test_only_the_step_that_loses_records_is_left(tmp_path: Path) -> None:
    document = tmp_path / "padded.yaml"
    document.write_text(PADDED, "utf-8")
    out = tmp_path / "runs"
    run = streamquake("run", str(document), "--out", str(out), "--seed", "7", "--plain")
    assert run.returncode == 1, run.stdout + run.stderr
    run_id = (out / "latest").resolve().name

    done = streamquake("shrink", run_id, "--out", str(out), "--tries", "1", "--of", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    folder = out / f"shrink-{run_id}"
    results: dict[str, Any] = json.loads((folder / "shrink.json").read_text("utf-8"))
    smallest = load_experiment(str(folder / "smallest.yaml"))
    assert [step.fault for step in smallest.faults] == ["lose_unflushed_log"], done.stdout
    assert (smallest.workload.planned or 0) < 16_000
    assert smallest.faults[0].target == "kafka/broker-1"
    assert (results["check"], results["found"]) == ("exactly_once", "lost")
    assert results["is_smallest"]
    assert results["rate"]["count"] >= 1
    assert results["deployments"] < results["runs_made"], "the runs share clusters"
    assert (out / "failing-cases.jsonl").exists()

    again = streamquake("shrink", run_id, "--out", str(out), "--tries", "1", "--of", "1")
    assert again.returncode == 0, again.stdout + again.stderr
    repeated: dict[str, Any] = json.loads((folder / "shrink.json").read_text("utf-8"))
    assert repeated["runs_made"] == 0, "all tries are taken over"


def test_a_replay_injects_exactly_as_the_run_did(tmp_path: Path) -> None:
    document = tmp_path / "padded.yaml"
    document.write_text(PADDED, "utf-8")
    argv = ("--out", str(tmp_path / "runs"), "--plain")
    run = streamquake("run", str(document), "--seed", "7", *argv)
    assert run.returncode == 1, run.stdout + run.stderr
    replay = streamquake("replay", "latest", "--exactly", *argv)
    assert replay.returncode == 1, replay.stdout + replay.stderr
    first, second = sorted((tmp_path / "runs").glob("2*"))
    calls = [calls_of(each) for each in (first, second)]
    assert [nodes for nodes, _ in calls[0]] == [nodes for nodes, _ in calls[1]]
    steps = zip(load_experiment(str(document)).faults, *calls, strict=True)
    for step, (_, before), (_, after) in steps:
        assert step.when.at_record is not None
        assert min(before, after) >= step.when.at_record


def calls_of(run: Path) -> list[tuple[list[str], int]]:
    """The nodes of each injection of a run, and the last record acknowledged before it."""
    found, last = [], -1
    for line in (run / "history.jsonl").read_text("utf-8").splitlines()[1:]:
        event: dict[str, Any] = json.loads(line)
        value = event["value"]
        if event["action"] == "records sent" and value["status"] == "acknowledged":
            last = value["last"]
        elif event["action"] == "fault called":
            found.append((value["nodes"], last))
    return found
