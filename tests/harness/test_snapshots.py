"""Every reviewed snapshot belongs to a test that is there. The tiers run without the detection of
unused snapshots: with thousands of tests it takes seconds, and it counts those of tests in another
tier as unused."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SNAPSHOTS = sorted(Path(__file__).parent.rglob("__snapshots__/*.ambr"))


def missing_tests(snapshots: str, module: str) -> set[str]:
    """The tests that have a snapshot and are not in the module's text."""
    defined = {
        node.name for node in ast.walk(ast.parse(module)) if isinstance(node, ast.FunctionDef)
    }
    return set(re.findall(r"^# name: (\w+)", snapshots, re.MULTILINE)) - defined


@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: file.stem)
def test_every_snapshot_has_its_test(file: Path) -> None:
    module = file.parent.parent / f"{file.stem}.py"

    assert missing_tests(file.read_text("utf-8"), module.read_text("utf-8")) == set()


def test_a_snapshot_without_its_test_is_found() -> None:
    snapshots = "# serializer version: 1\n# name: test_one[a]\n  1\n# name: test_two\n  2\n"

    assert SNAPSHOTS
    assert missing_tests(snapshots, "def test_one() -> None: ...") == {"test_two"}
