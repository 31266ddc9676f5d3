"""Which of several recoveries the figures of a run describe."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.recovery import main_recovery

NOTHING = {"detected_s": None, "restarted_s": None, "first_output_s": 1.0}
CUT_OFF = {"detected_s": 0.8, "restarted_s": 5.8, "first_output_s": None}
DOWN = {"detected_s": 0.8, "restarted_s": None, "first_output_s": None}
WHOLE = {"detected_s": 9.8, "restarted_s": 12.9, "first_output_s": 16.3}
LATER = {"detected_s": 1.0, "restarted_s": 2.0, "first_output_s": 3.0}


@pytest.mark.parametrize(
    ("recoveries", "main"),
    [
        ([NOTHING], 0),
        ([NOTHING, NOTHING], 0),
        ([NOTHING, NOTHING, WHOLE], 2),
        ([CUT_OFF, WHOLE], 1),
        ([DOWN, NOTHING], 0),
        ([NOTHING, DOWN, CUT_OFF], 1),
        ([WHOLE, LATER], 0),
    ],
)
def test_it_is_the_first_whole_one_from_a_failure(
    recoveries: list[dict[str, float | None]], main: int
) -> None:
    assert main_recovery(recoveries) == main
