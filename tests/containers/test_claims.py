"""The suite of claims on real systems: every claim holds, its control included."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.loader import SUITES
from streamquake.topologies.yaml_document import read_document

pytestmark = [pytest.mark.container, pytest.mark.nightly]

LIMIT_S = 3600
DOCUMENT = read_document(SUITES / "claims.yaml").data


def names_of_experiments(row: Mapping[str, Any]) -> Iterator[str]:
    """The experiments that a row names. The suite is not loaded, because that reads all of them
    whenever tests are collected."""
    yield from (row[key] for key in ("experiment", "control") if key in row)
    yield from (point["experiment"] for point in row.get("series", ()))


def parts_of_the_suite(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The experiments of the suite, those that share rows together: a suite runs each of them once
    for all of its rows, and a shard of the nightly tests need not run all rows."""
    parts: list[set[str]] = []
    for row in rows:
        names = set(names_of_experiments(row))
        shared = [part for part in parts if part & names]
        parts = [part for part in parts if not part & names]
        if names:
            parts.append(names.union(*shared))
    return [tuple(sorted(part)) for part in parts]


@pytest.mark.parametrize("part", parts_of_the_suite(DOCUMENT["rows"]), ids=lambda part: part[0])
def test_every_claim_holds(part: tuple[str, ...], tmp_path: Path) -> None:
    assert_rows_hold("claims", part, tmp_path)


def assert_rows_hold(suite_name: str, part: Iterable[str], tmp_path: Path) -> None:
    """Run the rows of a suite with these experiments."""
    only = [word for name in part for word in ("--only", name)]
    program = [sys.executable, "-m", "streamquake", "suite", suite_name, *only]
    done = subprocess.run(
        [*program, "--seed", "7", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    message = done.stdout + done.stderr
    (results,) = tmp_path.glob("suite-*/suite.json")
    suite: dict[str, Any] = json.loads(results.read_text("utf-8"))
    assert suite["rows"]
    assert {row["claim"]: row["outcome"] for row in suite["rows"]} == {
        row["claim"]: "held" for row in suite["rows"]
    }, message
    assert done.returncode == 0, message
