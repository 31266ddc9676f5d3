"""Every verdict that the tests of the checks come to, compared as a whole with the one reviewed.

A test asserts what it is about; the rest of what a check says of it (words, counts, findings) is
kept beside it in `__snapshots__`. A change there is read in the diff before it is accepted, with
`pytest --snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.reports.record.outcome import CheckResult


@pytest.fixture(autouse=True)
def reviewed_verdicts(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Compare what the checks of a test say with what was reviewed; a test of drawn cases says
    something else each time."""
    if hasattr(request.function, "hypothesis"):
        yield
        return
    snapshot: SnapshotAssertion = request.getfixturevalue("snapshot")
    recorded: list[dict[str, Any]] = []
    for kind in checks.values():
        _listen(kind, recorded, str(tmp_path), monkeypatch)
    yield
    if recorded:
        assert recorded == snapshot


def _listen(
    kind: type[Check], recorded: list[dict[str, Any]], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = kind.check

    def check(self: Check, case: JudgedRun) -> CheckResult:
        result = judge(self, case)
        recorded.append(_plain(result, folder))
        return result

    monkeypatch.setattr(kind, "check", check)


def _plain(result: CheckResult, folder: str) -> dict[str, Any]:
    """A result in plain values, without the folder that each test has of its own."""

    def without(value: object) -> Any:
        if isinstance(value, str):
            return value.replace(folder, "FOLDER")
        if isinstance(value, dict):
            return {str(name): without(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [without(each) for each in value]
        return value if isinstance(value, bool | int | None) else str(value)

    found = [[each.what, each.where, dict(each.detail)] for each in result.findings]
    plain = {
        "check": result.check,
        "outcome": str(result.outcome),
        "summary": result.summary,
        "counts": dict(result.counts),
        "findings": found,
    }
    return {name: without(value) for name, value in plain.items()}
