"""Commits of the sink: the first growth of each output after a completed checkpoint."""

from __future__ import annotations

from typing import Any

from streamquake.harness.verdict.evidence.commits import CommitRecorder
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


def test_each_output_is_recorded_once_for_each_checkpoint() -> None:
    recorded: list[dict[str, Any]] = []

    def record(action: Action, **value: Any) -> None:
        recorded.append({"action": action, **value})

    story = Story().at(0.5, Action.OUTPUT_SEEN, output="totals", end=1)
    for checkpoint, at_s in ((1, 1.0), (2, 2.0)):
        story.checkpoint(checkpoint, at_s, at_s + 0.1)
        for output in ("totals", "totals", "late"):
            story.at(at_s + 0.2, Action.OUTPUT_SEEN, output=output, end=9)
    recorder = CommitRecorder(record)
    for event in story.history():
        recorder.observe(event)
    assert recorded == [
        {
            "action": Action.SINK_COMMITTED,
            "process": "test",
            "checkpoint": checkpoint,
            "output": output,
            "end": 9,
        }
        for checkpoint in (1, 2)
        for output in ("totals", "late")
    ]
