"""An output that was not read to its end."""

from __future__ import annotations

from typing import ClassVar

from streamquake.harness.selftest.change import Change, RecordedRunCopy, changes
from streamquake.reports.record.expected_outcome import Written


@changes.register
class OutputNotRead(Change):
    """What is written last of a reading is not there."""

    name: ClassVar[str] = "output_not_read"
    expect: ClassVar[Written] = {
        "execution": "undecided",
        "exactly_once": "undecided",
        "throughput": "undecided",
    }

    def make(self, record: RecordedRunCopy) -> None:
        (record.folder.data / "totals" / "read.json").unlink()
