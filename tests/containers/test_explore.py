"""Explorations on real systems: a healthy engine is not accused, a weak job is found out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.container, pytest.mark.nightly]


def explore(out: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Explore running totals by key; the exit status, the summary, and the progress."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "streamquake", "explore", "undisturbed"),
            *("--json", "--out", str(out), "--seed", "7", *options),
        ],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_a_healthy_job_is_held_and_the_exploration_goes_on(tmp_path: Path) -> None:
    status, summary, progress = explore(tmp_path, "--trials", "3")
    assert status == 0, progress
    outcomes = [trial["outcome"] for trial in summary["trials"]]
    assert len(outcomes) == 3
    assert "violated" not in outcomes
    assert all(trial["cells"] for trial in summary["trials"] if trial["outcome"] == "held")
    for trial in summary["trials"]:
        assert (tmp_path / trial["run"] / "report.html").exists()

    _, continued, progress = explore(tmp_path, "--trials", "4")
    assert "going on after 3 trials" in progress
    assert continued["trials"][:3] == summary["trials"]


def test_a_job_that_repeats_records_is_found_out(tmp_path: Path) -> None:
    """Without transactions a job repeats records after each restart."""
    weak = ("--set", "job.sink=at-least-once")
    status, summary, progress = explore(
        tmp_path, *weak, "--trials", "12", "--repeats", "1", "--no-shrink"
    )
    assert status == 1, progress
    violated = [trial for trial in summary["trials"] if trial["outcome"] == "violated"]
    assert violated
    results = json.loads((tmp_path / violated[0]["run"] / "results.json").read_text())
    (check,) = (c for c in results["checks"] if c["check"] == "exactly_once")
    assert check["counts"]["duplicated"] > 0
    assert check["counts"]["lost"] == 0
