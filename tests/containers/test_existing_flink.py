"""A Flink and a Kafka that another run started, and its job, used as `existing-flink`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import read_history
from tests.containers.test_existing import STREAMQUAKE, streamquake
from tests.pace import at_pace, wait_until

pytestmark = [pytest.mark.container, pytest.mark.nightly]

FIRST = """\
name: theirs
topology: flink-kafka-hdfs
job: {sql: copy.sql, parallelism: 2}
workload: {numbered: {records: 1000, rate_per_s: 500, keys: 16}}
checks: [exactly_once]
"""
SECOND = """\
name: followed
topology: existing-flink
job:
  existing: {job: JOB}
  promise:
    outputs:
      copies: {kafka: copies, identity: [key, seq], compare: [amount, checksum], order: seq}
    expected: SELECT key, seq, amount, checksum FROM sent
workload: {numbered: {records: RECORDS, rate_per_s: 500, keys: 16}}
limits: {steady_s: LIMIT-S, drain_s: LIMIT-S, recover_s: LIMIT-S}
checks: [exactly_once, {checkpoints: {under_pressure: false, completed_share: 0.5}}]
"""


@dataclass(frozen=True)
class Theirs:
    """What another user runs: addresses and the run id of its cluster."""

    run: str
    kafka: str
    flink: str


def address(status: Mapping[str, Any], node: str) -> str:
    """Where this machine reaches the only published port of a node."""
    (ports,) = (known["ports"] for known in status["nodes"] if known["node"] == node)
    (port,) = ports
    return str(port["address"])


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "theirs.yaml").write_text(FIRST, encoding="utf-8")
    out = folder / "runs"
    done = streamquake("run", str(folder / "theirs.yaml"), "--keep", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    run = (out / "latest").resolve().name
    try:
        status = json.loads(streamquake("status", "--run", run, "--json").stdout)
        yield Theirs(
            run=run,
            kafka=address(status, "kafka/broker-1"),
            flink=address(status, "flink/jobmanager-1"),
        )
    finally:
        down = streamquake("down", "--run", run)
        assert down.returncode == 0, down.stdout + down.stderr


def start(theirs: Theirs, folder: Path, records: int, job: str = "theirs") -> Any:
    text = SECOND.replace("JOB", job).replace("RECORDS", str(records))
    text = text.replace("LIMIT-S", f"{at_pace(120):.0f}")
    (folder / "followed.yaml").write_text(text, encoding="utf-8")
    endpoints = {"kafka": theirs.kafka, "flink": theirs.flink}
    sets = [f"topology.services.{name}.endpoint={at}" for name, at in endpoints.items()]
    command = [*STREAMQUAKE, "run", str(folder / "followed.yaml"), "--out", str(folder / "runs")]
    return subprocess.Popen(
        [*command, *(word for each in sets for word in ("--set", each))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: Any, folder: Path) -> tuple[int, dict[str, Any], str]:
    printed, _ = process.communicate(timeout=600)
    results = folder / "runs" / "latest" / "results.json"
    assert results.exists(), printed
    return process.returncode, json.loads(results.read_text(encoding="utf-8")), printed


def events(folder: Path, action: Action) -> list[Event]:
    history = folder / "runs" / "latest" / "history.jsonl"
    return list(read_history(history).of(action)) if history.exists() else []


def test_a_job_that_runs_already_is_followed_and_judged(theirs: Theirs, tmp_path: Path) -> None:
    status, results, printed = ended(start(theirs, tmp_path, 6000), tmp_path)
    assert (status, results["outcome"]) == (0, "held"), printed
    (submitted,) = events(tmp_path, Action.JOB_SUBMITTED)
    assert submitted.value["name"] == "theirs"
    assert len(events(tmp_path, Action.CHECKPOINT_COMPLETED)) >= 2
    assert {event.value["attempt"] for event in events(tmp_path, Action.TASK_CHANGED)} == {0}


def test_a_taskmanager_that_another_user_kills_is_seen_and_judged(
    theirs: Theirs, tmp_path: Path
) -> None:
    process = start(theirs, tmp_path, 15_000)

    def not_yet() -> str | None:
        assert process.poll() is None, process.stdout.read()
        return None if events(tmp_path, Action.CHECKPOINT_COMPLETED) else "no checkpoint completed"

    wait_until(not_yet, what="the job is followed", limit_s=120, clock=SystemClock())
    injected = streamquake(
        "inject", "kill", "flink/taskmanager-1", "--run", theirs.run, "--for", "3s"
    )
    assert injected.returncode == 0, injected.stdout + injected.stderr
    status, results, printed = ended(process, tmp_path)
    assert (status, results["outcome"]) == (0, "held"), printed
    assert max(event.value["attempt"] for event in events(tmp_path, Action.TASK_CHANGED)) >= 1
    assert events(tmp_path, Action.JOB_FAILING), printed


def test_a_job_that_does_not_run_is_named_with_those_that_do(
    theirs: Theirs, tmp_path: Path
) -> None:
    process = start(theirs, tmp_path, 1000, job="nothing")
    printed, _ = process.communicate(timeout=600)
    assert process.returncode not in (0, 1), printed
    assert 'expected one running job of flink called "nothing", got 0; running: theirs' in (
        " ".join(printed.split())
    )
