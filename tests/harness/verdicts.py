"""Compares all results of the checks in a test with reviewed snapshots.

A test asserts only what it is about; all other parts of the results (summaries, counts, findings)
are compared with `__snapshots__`. Review a changed snapshot in the diff, after
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
    """Compare the results of all checks in a test with its snapshot. Tests with random cases are
    left out, because their results differ each time."""
    if hasattr(request.function, "hypothesis"):
        yield
        return
    snapshot: SnapshotAssertion = request.getfixturevalue("snapshot")
    recorded: list[dict[str, Any]] = []
    for kind in checks.values():
        _record_results(kind, recorded, str(tmp_path), monkeypatch)
    yield
    if recorded:
        assert recorded == snapshot


def _record_results(
    kind: type[Check], recorded: list[dict[str, Any]], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = kind.check

    def check(self: Check, case: JudgedRun) -> CheckResult:
        result = judge(self, case)
        recorded.append(_plain(result, folder))
        return result

    monkeypatch.setattr(kind, "check", check)


def _plain(result: CheckResult, folder: str) -> dict[str, Any]:
    """A result as JSON values, without the temporary folder of the test."""

    def replace_folder(value: object) -> Any:
        if isinstance(value, str):
            return value.replace(folder, "FOLDER")
        if isinstance(value, dict):
            return {str(name): replace_folder(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [replace_folder(item) for item in value]
        return value if isinstance(value, bool | int | None) else str(value)

    found = [[f.what, f.where, dict(f.detail)] for f in result.findings]
    plain = {
        "check": result.check,
        "outcome": str(result.outcome),
        "summary": result.summary,
        "counts": dict(result.counts),
        "findings": found,
    }
    return {name: replace_folder(value) for name, value in plain.items()}
