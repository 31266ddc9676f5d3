"""Sends the records of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from streamquake.harness.workloads.recorded.data_set import RecordedLine
from streamquake.harness.workloads.sending.sender import Sender, SenderArguments


class RecordedSender(Sender):
    """A `RunningWorkload` that sends these records in their order."""

    def __init__(
        self, records: Sequence[RecordedLine], **arguments: Unpack[SenderArguments]
    ) -> None:
        super().__init__(len(records), **arguments)
        self._all = records

    def _records(self, first: int, end: int) -> Sequence[RecordedLine]:
        return self._all[first:end]
