"""The self-test with as many records as a nightly run has time for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.nightly
def test_all_anomalies_planted_in_ten_million_records_are_found(tmp_path: Path) -> None:
    """Every class at every rate and in every shape, with another seed each night."""
    written = tmp_path / "selftest.json"
    done = subprocess.run(
        [sys.executable, "-m", "streamquake", "selftest", "--large", "--json", str(written)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(written.read_text(encoding="utf-8"))
    assert results["outcome"] == "held"
    assert len(results["cells"]) > 100
