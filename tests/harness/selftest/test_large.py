"""The self-tests for which only a nightly run has time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "cells"),
    [
        pytest.param(["--large"], 200, id="each class at each rate and in each shape"),
        pytest.param(["--records", "10000000"], 40, id="ten million records"),
    ],
)
def test_all_planted_anomalies_are_found(options: list[str], cells: int, tmp_path: Path) -> None:
    """With another seed each night."""
    written = tmp_path / "selftest.json"
    done = subprocess.run(
        [sys.executable, "-m", "streamquake", "selftest", *options, "--json", str(written)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(written.read_text(encoding="utf-8"))
    assert results["outcome"] == "held"
    assert len(results["cells"]) >= cells
