"""The suites of bugs on real systems: each bug is found, and the same without it is held."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.campaign.suite.loader import SUITES
from streamquake.topologies.yaml_document import read_document
from tests.containers.test_claims import assert_rows_hold, parts_of_the_suite

pytestmark = [pytest.mark.container, pytest.mark.nightly]

PLANTED = read_document(SUITES / "planted.yaml").data


def test_a_known_bug_is_found_in_its_release_and_not_in_the_next(tmp_path: Path) -> None:
    assert_rows_hold("zoo", ["flink-30687", "flink-30687-fixed"], tmp_path)


@pytest.mark.parametrize("part", parts_of_the_suite(PLANTED["rows"]), ids=lambda part: part[0])
def test_a_planted_bug_is_found_and_its_control_is_held(
    part: tuple[str, ...], tmp_path: Path
) -> None:
    assert_rows_hold("planted", part, tmp_path)
