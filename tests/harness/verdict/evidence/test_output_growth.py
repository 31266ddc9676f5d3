"""Events of the growth of an output that contradict each other."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.output_growth import contradicted_growth
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


@pytest.mark.parametrize(
    ("growth", "messages"),
    [
        ([(500, 20), (510, 10), (600, 90)], []),
        ([(20, 20), (10, 10)], ["by 10 from 20 to 10 at 2.0 s"]),
        ([(20, 20), (40, 10), (60, 10)], ["by 10 from 20 to 40 at 2.0 s"]),
        ([(20, 20), (10, -10)], ["by -10 from 20 to 10 at 2.0 s"]),
        ([(5, 9), (9, 4)], ["by 9 from -4 to 5 at 1.0 s"]),
        ([(0, 0)], ["by 0 from 0 to 0 at 1.0 s"]),
        ([(None, 5), (7, None)], []),
    ],
)
def test_each_event_begins_where_the_one_before_ended(
    growth: list[tuple[int | None, int | None]], messages: list[str]
) -> None:
    story = Story().at(0.5, Action.OUTPUT_SEEN, output="others", end=7, grown=7)
    for second, (end, grown) in enumerate(growth, start=1):
        story.at(second, Action.OUTPUT_SEEN, output="totals", end=end, grown=grown)
    assert list(contradicted_growth(story.history())) == [
        f"the output totals is recorded to grow {message}" for message in messages
    ]
