"""Events whose times are not in the order in which they were recorded."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.recorded_order import out_of_order
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], None),
        ([(5.0, Action.DRAINED), (6.0, Action.DRAINED)], None),
        ([(6.0, Action.DRAINED), (1.1, Action.DRAINED)], None),  # it was queued late
        (
            [(5.0, Action.DRAINED), (6.0, Action.OUTPUT_SEEN), (0.9, Action.JOB_RUNNING)],
            "`job running` is recorded at 0.9 s, and `output seen` before it at 6.0 s",
        ),
        (
            [(9.0, Action.OUTPUT_SEEN), (3.0, Action.DRAINED), (6.0, Action.DRAINED)],
            "`drained` is recorded at 3.0 s, and `output seen` before it at 9.0 s",
        ),
        # Its details were read since.
        ([(9.0, Action.OUTPUT_SEEN), (3.0, Action.CHECKPOINT_COMPLETED)], None),
        ([(9.0, Action.OUTPUT_SEEN), (3.0, Action.CHECKPOINT_FAILED)], None),
        # The container engine has a clock of its own.
        ([(9.0, Action.OUTPUT_SEEN), (3.0, Action.CONTAINER_DIED)], None),
        ([(9.0, Action.CONTAINER_STARTED), (3.0, Action.DRAINED)], None),
    ],
)
def test_an_event_is_recorded_right_after_its_time(
    events: list[tuple[float, Action]], message: str | None
) -> None:
    values: dict[Action, dict[str, Any]] = {
        Action.OUTPUT_SEEN: {"output": "o"},
        Action.CHECKPOINT_COMPLETED: {"checkpoint": 1},
        Action.CHECKPOINT_FAILED: {"checkpoint": 1},
    }
    story = Story()
    for at_s, action in events:
        story.at(at_s, action, **values.get(action, {}))
    assert out_of_order(story.history()) == message
