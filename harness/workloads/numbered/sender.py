"""Sends numbered records, which can be changed while they are sent.

Requests are queued. The sending thread applies each between two records, records it in the history,
and only then sends the first affected record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from confluent_kafka import Message

from streamquake.harness.workloads.numbered.change_log import ChangeInterval, WorkloadChangeLog
from streamquake.harness.workloads.numbered.change_requests import ChangeRequests
from streamquake.harness.workloads.numbered.records import LoadDefinition, Record
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.harness.workloads.sending.pace import EvenPace
from streamquake.harness.workloads.sending.sender import Delivered, Sender, SenderArguments
from streamquake.reports.record.event import Action, Kind


class NumberedSender(Sender[Record]):
    """A `RunningWorkload` that sends the records of a definition, and a `SteerableLoad`."""

    def __init__(
        self,
        *,
        definition_of: Callable[[Sequence[ScheduledChange]], LoadDefinition],
        rate_per_s: int,
        **arguments: Unpack[SenderArguments],
    ) -> None:
        self._rate_per_s = rate_per_s
        self._even_pace = EvenPace(rate_per_s, arguments["clock"].now_ns())
        super().__init__(definition_of(()).records, self._even_pace, **arguments)
        self._requests = ChangeRequests()
        self._change_log = WorkloadChangeLog(definition_of, self._clock.now_ns())

    @property
    def steering(self) -> NumberedSender:
        return self

    def steer(self, disturbance: str, parameters: Mapping[str, Any]) -> int:
        """Begin a disturbance; returns the first record that it affects. Raises WorkloadFinished if
        all records are sent, and ValueError for an unknown disturbance."""
        ScheduledChange(0, disturbance, parameters).build_fault()
        return self._requests.submit(disturbance, parameters)

    def settle(self, disturbance: str) -> int:
        return self._requests.submit(disturbance, None)

    def sent_under(self, disturbance: str) -> Mapping[str, Any]:
        figures = self._change_log.sent_under(disturbance, self._clock.now_ns())
        finished = self._requests.is_closed
        return {**figures, "active": figures["active"] and not finished, "finished": finished}

    def _records(self, first: int, end: int) -> Iterator[Record]:
        return self._change_log.definition.between(first, end)

    def _before_chunk(self, index: int) -> None:
        """Apply the queued requests, from record `index` on."""
        for request in self._requests.take_all():
            change = ScheduledChange(index, request.disturbance, request.parameters)
            try:
                self._apply(change)
            except ValueError as error:
                request.first_record.set_exception(error)
            else:
                request.first_record.set_result(index)

    def _apply(self, change: ScheduledChange) -> None:
        now_ns = self._clock.now_ns()
        if not self._change_log.apply_change(change, now_ns):
            return
        self._record(Kind.INFO, Action.WORKLOAD_STEERED, change._asdict())
        rate_per_s = self._rate_per_s * self._change_log.factor()
        self._even_pace.change(rate_per_s, change.at_record, now_ns)

    @property
    def _must_pause(self) -> bool:
        return super()._must_pause or self._requests.has_any

    def _delivery(self) -> Delivered:
        interval: ChangeInterval = self._change_log.current_interval

        def count(index: int, message: Message) -> None:
            self._change_log.acknowledged(index, interval, message)

        return count

    def _all_sent(self, index: int) -> None:
        self._requests.close(index)

    def _progress_recorded(self, now_ns: int) -> None:
        self._change_log.mark(now_ns)
