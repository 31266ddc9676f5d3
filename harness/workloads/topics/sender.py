"""Sends records to several topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from streamquake.harness.workloads.sending.pace import Pace
from streamquake.harness.workloads.sending.sender import Sender, SenderArguments


class TopicRecord(NamedTuple):
    """One record to be sent to its topic."""

    index: int  # type: ignore[assignment]  # a record's number, not tuple.index
    key: str | None
    partition: int
    text: bytes | None
    topic: str

    def value(self) -> bytes | None:
        return self.text


class TopicsSender(Sender[TopicRecord]):
    """A `RunningWorkload` that sends these records in their order, each to its topic."""

    def __init__(
        self, records: Sequence[TopicRecord], pace: Pace, **arguments: Unpack[SenderArguments]
    ) -> None:
        super().__init__(len(records), pace, **arguments)
        self._all = records

    def _records(self, first: int, end: int) -> Sequence[TopicRecord]:
        return self._all[first:end]

    def _topic_of(self, record: TopicRecord) -> str:
        return record.topic
