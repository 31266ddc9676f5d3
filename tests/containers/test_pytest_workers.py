"""Two workers of pytest-xdist on a real cluster: each runs an experiment, and they share it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamquake.reports.record.event import Action
from streamquake.reports.record.history import read_history
from streamquake.reports.record.run_folder import RunFolder

pytestmark = pytest.mark.container

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(2))
@pytest.mark.chaos(
    topology="kafka-only",
    workload={"numbered": {"records": 10000, "rate_per_s": 500}},
    schedule=[{"pause": {}, "target": "kafka/broker-1", "at_s": 1, "for_s": 1}],
)
def test_it(chaos_run, number):
    assert chaos_run.as_expected
"""


@pytest.mark.nightly
def test_workers_use_one_cluster_in_turn(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "each", "-v", "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    message = done.stdout + done.stderr

    assert done.returncode == 0, message
    assert "4 passed" in message
    runs = [path for path in (tmp_path / "runs").iterdir() if not path.is_symlink()]
    reused = [read_history(RunFolder(run).history).of(Action.CLUSTER_REUSED) for run in runs]
    assert sorted(events[0].value["runs_before"] if events else 0 for events in reused) == [
        *range(4)
    ]
    assert len({events[0].value["deployed_by"] for events in reused if events}) == 1
