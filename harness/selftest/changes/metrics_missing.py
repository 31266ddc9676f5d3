"""A record without its samples."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class MetricsMissing(Change):
    """The file is gone: what only samples show, such as a task replaced between two looks, is not
    known."""

    name: ClassVar[str] = "metrics_missing"
    expect: ClassVar[Written] = "undecided"

    def make(self, record: RecordedRunCopy) -> None:
        record.folder.metrics.unlink()
