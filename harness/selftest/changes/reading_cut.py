"""A reading of which a file was lost."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class ReadingCut(Change):
    """The record holds fewer records than were read: these were not lost by the job."""

    name: ClassVar[str] = "reading_cut"
    expect: ClassVar[Written] = {"exactly_once": "undecided", "throughput": "undecided"}

    def make(self, record: RecordedRunCopy) -> None:
        files = (record.folder.data / "totals" / "records" / "committed").glob("*.parquet")
        min(files).unlink()
