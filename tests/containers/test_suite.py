"""A suite on real systems: its runs share a cluster, also after a kill and an agent, and no run
reads a record of another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamquake.reports.record.event import Action
from streamquake.reports.record.history import read_history
from streamquake.reports.record.run_folder import RunFolder

pytestmark = pytest.mark.container

EXPERIMENT = """
name: {name}
topology: flink-kafka-hdfs
job: {{sql: keyed-totals.sql, parallelism: 2}}
workload: {{numbered: {{records: 30000, rate_per_s: 1000, keys: 32}}}}
faults:
  - {{{fault}, at_s: 1, for_s: 2}}
checks: [exactly_once]
"""
FAULTS = {
    "first": "kill: {}, target: flink/taskmanager-1",
    "second": "throw_in_task: {subtask: 0}, target: the node running subtask 0 of totals",
    "third": "slow_link: {latency_ms: 50}, target: link sink",
}


def test_runs_on_one_cluster_read_no_records_of_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "three"
    folder.mkdir()
    for name, fault in FAULTS.items():
        (folder / f"{name}.yaml").write_text(EXPERIMENT.format(name=name, fault=fault), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "streamquake", "suite", str(folder), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    message = done.stdout + done.stderr
    (results,) = tmp_path.glob("suite-*/suite.json")
    suite: dict[str, Any] = json.loads(results.read_text("utf-8"))
    assert (done.returncode, suite["deployments"]) == (0, 1), message
    for row in suite["rows"]:
        run = json.loads((tmp_path / row["run"] / "results.json").read_text("utf-8"))
        (check,) = (c for c in run["checks"] if c["check"] == "exactly_once")
        # Records of the other run would be phantoms, or duplicates if the seeds are equal.
        assert check["outcome"] == "held", message
        assert check["counts"]["phantom"] == 0
        assert check["counts"]["totals.expected"] == 30_000
    assert [reuse_of(tmp_path / row["run"]) for row in suite["rows"]] == [
        None,
        (1, []),
        (2, [agent_node(tmp_path / suite["rows"][1]["run"])]),
    ]
    assert results.with_name("suite.html").exists()
    assert results.with_name("junit.xml").exists()


def reuse_of(run: Path) -> tuple[int, list[str]] | None:
    """How many runs had used the cluster of a run before, and which nodes were started anew."""
    events = read_history(RunFolder(run).history).of(Action.CLUSTER_REUSED)
    return (events[0].value["runs_before"], events[0].value["restarted"]) if events else None


def agent_node(run: Path) -> str:
    """The node in whose process a run left an agent."""
    (called,) = read_history(RunFolder(run).history).of(Action.FAULT_CALLED)
    (node,) = called.value["nodes"]
    return str(node)
