"""Outputs that grow after everything was committed."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.drain import output_after_drain
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


@pytest.mark.parametrize(("at_s", "grown", "late"), [(9, 3, False), (11, 3, True), (11, 0, False)])
def test_no_output_grows_after_the_drain(at_s: float, grown: int, late: bool) -> None:
    story = Story().at(1, Action.OUTPUT_SEEN, output="copies", grown=9).at(10, Action.DRAINED)
    for offset_s in (0, 1):
        story.at(at_s + offset_s / 10, Action.OUTPUT_SEEN, output="copies", grown=grown)
    found = output_after_drain(story.history())
    assert (found and (found.output, found.at_s)) == (("copies", at_s) if late else None)


def test_without_a_drain_no_output_grows_after_it() -> None:
    story = Story().at(1, Action.OUTPUT_SEEN, output="copies", grown=9)
    assert output_after_drain(story.history()) is None
