"""Randomly drawn schedules, one run after the other: no harness errors, no leftovers, and a reason
for every verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.reports.record.event import Action
from streamquake.reports.record.run_folder import RunFolder

pytestmark = [pytest.mark.container, pytest.mark.nightly]

SMALL = (
    "--set",
    "draw.within_s=25",
    "--set",
    "workload.numbered.records=80000",
    "--set",
    "workload.numbered.rate_per_s=2000",
)
"""A run of 90 seconds is long enough for several faults at a time."""


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_drawn_schedule_runs_without_a_harness_error(
    seed: int, tmp_path: Path, docker_runtime: DockerRuntime
) -> None:
    command = [sys.executable, "-m", "streamquake", "run", "swarm", "--seed", str(seed), *SMALL]
    done = subprocess.run(
        [*command, "--out", str(tmp_path), "--plain"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    message = done.stdout + done.stderr
    folder = RunFolder((tmp_path / "latest").resolve())
    results = folder.read_results()
    assert results.ended == "completed", message
    errors = [
        line
        for line in folder.history.read_text().splitlines()
        if json.loads(line).get("action") == Action.HARNESS_ERROR
    ]
    assert errors == [], message
    marks = {labels.RUN: folder.run_id}
    assert (*docker_runtime.find(marks), *docker_runtime.find_networks(marks)) == ()
    assert str(results.outcome) != "violated", message
    for check in results.checks:
        if str(check.outcome) == "undecided":
            assert check.summary or check.findings, f"{check.check} does not say why: {message}"
