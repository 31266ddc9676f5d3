"""Sends the records of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from streamquake.harness.workloads.data_sets.data_set import DataSetRecord
from streamquake.harness.workloads.sending.pace import Pace
from streamquake.harness.workloads.sending.sender import Sender, SenderArguments


class DataSetSender(Sender[DataSetRecord]):
    """A `RunningWorkload` that sends these records in their order, each to its own topic if it
    names one."""

    def __init__(
        self, records: Sequence[DataSetRecord], pace: Pace, **arguments: Unpack[SenderArguments]
    ) -> None:
        super().__init__(len(records), pace, **arguments)
        self._all = records

    def _records(self, first: int, end: int) -> Sequence[DataSetRecord]:
        return self._all[first:end]

    def _topic_of(self, record: DataSetRecord) -> str:
        return record.topic or self._topic
