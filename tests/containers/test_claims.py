"""The suite of claims on real systems: every claim holds, its control included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.container, pytest.mark.nightly]

LIMIT_S = 3 * 3600


def test_every_claim_holds(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "streamquake",
            "suite",
            "claims",
            "--seed",
            "7",
            "--out",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    message = done.stdout + done.stderr
    (results,) = tmp_path.glob("suite-*/suite.json")
    suite: dict[str, Any] = json.loads(results.read_text("utf-8"))
    assert {row["claim"]: row["outcome"] for row in suite["rows"]} == {
        row["claim"]: "held" for row in suite["rows"]
    }, message
    assert done.returncode == 0, message
