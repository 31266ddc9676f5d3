"""A suite on real systems: the main experiment, with half of its load, is held; on the same cluster
a canary reads no record of it and is violated."""

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

EXPERIMENTS = {
    "main": """
base: kill-taskmanager-mid-checkpoint
name: main
workload: {numbered: {records: 60000, rate_per_s: 2000, keys: 128}}
""",
    "repeated": """
base: canary
name: repeated
job: {sql: keyed-totals.sql, parallelism: 2, sink: at-least-once}
workload: {numbered: {records: 15000, rate_per_s: 1000, keys: 32}}
faults:
  - kill: {}
    target: the node running subtask 0 of totals
    when: {event: checkpoint completed, nth: 2, delay_s: 1.5}
    for_s: 2
""",
}
ANOMALIES = ("lost", "duplicated", "phantom", "changed", "malformed")


def test_runs_on_one_cluster_read_no_records_of_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    for name, text in EXPERIMENTS.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "streamquake", "suite", str(folder), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    message = done.stdout + done.stderr
    (suite_results,) = tmp_path.glob("suite-*/suite.json")
    suite: dict[str, Any] = json.loads(suite_results.read_text("utf-8"))
    assert (done.returncode, suite["deployments"]) == (0, 1), message
    runs = [tmp_path / row["run"] for row in suite["rows"]]
    main, canary = map(results_of, runs)
    assert (main["outcome"], main["ended"]) == ("held", "completed"), message
    (fault,) = main["faults"]
    assert fault["in_effect"]
    assert fault["healed"]
    # An attempt that missed its window may be followed by the next before the job runs again.
    assert main["recoveries"][-1]["phases"]["restarted_s"] > 0
    assert {name: counts_of(main)[name] for name in ANOMALIES} == dict.fromkeys(ANOMALIES, 0)
    # Records of another run would be phantoms, or duplicates if the seeds are equal.
    assert counts_of(main)["totals.expected"] == 60_000
    counts = counts_of(canary)
    assert counts["totals.expected"] == 15_000
    assert counts["lost"] == counts["phantom"] == counts["changed"] == 0, message
    assert counts["duplicated"] > 0, message
    # On a busy machine the first run may miss its window until its load ends, and is repeated.
    attempts = len(list(tmp_path.glob("*/run.json"))) - len(list(tmp_path.glob("latest")))
    assert runs_before(runs[1]) == attempts - 1 >= 1
    assert (runs[0] / "report.html").stat().st_size > 100_000
    assert suite_results.with_name("suite.html").exists()
    assert suite_results.with_name("junit.xml").exists()


def results_of(run: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((run / "results.json").read_text("utf-8"))
    return results


def counts_of(results: dict[str, Any]) -> dict[str, int]:
    """What `exactly_once` counted in a run."""
    (check,) = (each for each in results["checks"] if each["check"] == "exactly_once")
    counts: dict[str, int] = check["counts"]
    return counts


def runs_before(run: Path) -> int:
    """How many runs had used a run's cluster; 0 where it was deployed for the run."""
    events = read_history(RunFolder(run).history).of(Action.CLUSTER_REUSED)
    return int(events[0].value["runs_before"]) if events else 0
