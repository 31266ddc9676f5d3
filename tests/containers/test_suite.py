"""A suite on real systems: two runs share a cluster, and the second reads no record of the
first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.container

EXPERIMENT = """
name: {name}
topology: flink-kafka-hdfs
job: {{sql: keyed-totals.sql, parallelism: 2}}
workload: {{numbered: {{records: 30000, rate_per_s: 1000, keys: 32}}}}
faults:
  - {{slow_link: {{latency_ms: 50}}, target: link sink, at_s: 1, for_s: 2}}
checks: [exactly_once]
"""


def test_the_second_run_on_a_cluster_reads_no_record_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    for name in ("first", "second"):
        (folder / f"{name}.yaml").write_text(EXPERIMENT.format(name=name), "utf-8")
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
    assert results.with_name("suite.html").exists()
    assert results.with_name("junit.xml").exists()
