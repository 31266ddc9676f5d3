"""A suite on real systems: its runs share a cluster, also after an agent, no run reads a record of
another, and the violated one is found."""

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
job: {{sql: keyed-totals.sql, parallelism: 2{sink}}}
workload: {{numbered: {{records: 15000, rate_per_s: 1000, keys: 32}}}}
faults:
  - {{{fault}, for_s: 2}}
checks: [exactly_once]
expect: {expect}
"""
PLACE = "target: the node running subtask 0 of totals, "
"""A node with a part of the job: it has fewer tasks than the cluster has slots."""
KILL = f"kill: {{}}, {PLACE}"
CANARY = KILL + "when: {event: checkpoint completed, nth: 2, delay_s: 1.5}"
"""As in the shipped experiment of this name: records are written again."""
EXPERIMENTS: dict[str, dict[str, str]] = {
    "first": {"fault": f"throw_in_task: {{subtask: 0}}, {PLACE}at_s: 1"},
    "second": {
        "fault": CANARY,
        "sink": ", sink: at-least-once",
        "expect": "{exactly_once: duplicated}",
    },
}
ANOMALIES = ("lost", "duplicated", "phantom", "changed", "malformed")


def test_runs_on_one_cluster_read_no_records_of_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    for name, values in EXPERIMENTS.items():
        text = EXPERIMENT.format(**{"name": name, "sink": "", "expect": "held", **values})
        (folder / f"{name}.yaml").write_text(text, "utf-8")
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
    runs = [tmp_path / row["run"] for row in suite["rows"]]
    # Records of another run would be phantoms, or duplicates if the seeds are equal.
    first, canary = (counts_of(run) for run in runs)
    assert {name: first[name] for name in ANOMALIES} == dict.fromkeys(ANOMALIES, 0), message
    for counts in (first, canary):
        assert counts["totals.expected"] == 15_000
        assert counts["lost"] == counts["phantom"] == counts["changed"] == 0, message
    assert canary["duplicated"] > 0, message
    assert [reuse_of(run) for run in runs] == [None, (1, [agent_node(runs[0])])]
    assert results.with_name("suite.html").exists()
    assert results.with_name("junit.xml").exists()


def counts_of(run: Path) -> dict[str, int]:
    """What `exactly_once` counted in a run."""
    document = json.loads((run / "results.json").read_text("utf-8"))
    (check,) = (each for each in document["checks"] if each["check"] == "exactly_once")
    counts: dict[str, int] = check["counts"]
    return counts


def reuse_of(run: Path) -> tuple[int, list[str]] | None:
    """How many runs had used the cluster of a run before, and which nodes were started anew."""
    events = read_history(RunFolder(run).history).of(Action.CLUSTER_REUSED)
    return (events[0].value["runs_before"], events[0].value["restarted"]) if events else None


def agent_node(run: Path) -> str:
    """The node in whose process a run left an agent."""
    (called,) = read_history(RunFolder(run).history).of(Action.FAULT_CALLED)
    (node,) = called.value["nodes"]
    return str(node)
