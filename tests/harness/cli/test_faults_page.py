"""The page of all faults says what the classes say."""

from __future__ import annotations

from pathlib import Path

from streamquake.faults.fault import faults
from streamquake.harness.cli.faults_page import page

SHIPPED = Path(__file__).parents[3] / "docs" / "faults.md"


def test_the_shipped_page_is_the_one_that_the_classes_make() -> None:
    assert SHIPPED.read_text(encoding="utf-8") == page(), (
        "make it anew: python -m streamquake.harness.cli.faults_page > docs/faults.md"
    )


def test_every_fault_has_its_section() -> None:
    assert [f"## {name}" for name in faults] == [
        line for line in page().splitlines() if line.startswith("## ")
    ]
