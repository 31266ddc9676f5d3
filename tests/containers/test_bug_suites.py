"""A row of the suite of known bugs on real systems: a release with the bug, and one without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.test_claims import assert_rows_hold

pytestmark = [pytest.mark.container, pytest.mark.nightly]


def test_a_known_bug_is_found_in_its_release_and_not_in_the_next(tmp_path: Path) -> None:
    assert_rows_hold("zoo", ["flink-30687", "flink-30687-fixed"], tmp_path)
