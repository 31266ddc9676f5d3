"""Sends the records: one thread, one idempotent producer, an even rate.

The load can be changed while it is sent: requests are queued, and the sending thread applies each
between two records, records it in the history, and only then sends the first affected record. The
client is confluent-kafka (librdkafka): beside a cluster on two cores kafka-python does not reach
50,000 records per second (`tests/benchmarks/bench_producer.py` measures both).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.runtime.clock import Clock
from streamquake.harness.workloads.numbered.acknowledgements import AcknowledgementTimes
from streamquake.harness.workloads.numbered.change_log import ChangeInterval, WorkloadChangeLog
from streamquake.harness.workloads.numbered.change_requests import ChangeRequests
from streamquake.harness.workloads.numbered.pace import Pace
from streamquake.harness.workloads.numbered.ranges import PendingRanges, SendStatus, sent_values
from streamquake.harness.workloads.numbered.rate import RateSampler
from streamquake.harness.workloads.numbered.records import LoadDefinition, Record
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.reports.record.event import Action, EventDraft, Kind

PROCESS = "workload"
CHUNK_S = 0.025
"""Records are sent in chunks of this length: short enough for an even rate, long enough to be
cheap."""
CHUNK_RECORDS = 5_000
"""The largest chunk at very high rates, so that a stop or an event never waits long."""
RECORD_EVERY_S = 0.3
MAX_CATCH_UP = 2
"""After a stall the load is sent at up to this multiple of its rate, instead of in one burst."""
STOP_FLUSH_S = 10
MAX_IN_FLIGHT = 100_000
MAX_IN_FLIGHT_KB = 1 << 16
"""Both limit the memory of the client; above them the sender waits for acknowledgements."""
NOT_WRITTEN = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
"""After these errors the record is certainly not in the topic; after any other this is unknown."""


def producer_settings(bootstrap: str, delivery_timeout_s: float) -> dict[str, Any]:
    """Settings of the client: every send is settled within `delivery_timeout_s`."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "streamquake-workload",
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 10,
        "batch.size": 262_144,
        "compression.type": "none",
        "delivery.timeout.ms": int(delivery_timeout_s * 1000),
        "queue.buffering.max.messages": MAX_IN_FLIGHT,
        "queue.buffering.max.kbytes": MAX_IN_FLIGHT_KB,
        "log_level": 2,
    }


class NumberedSender:
    """A `RunningWorkload` that sends the records of a recipe, and a `Steering`."""

    def __init__(
        self,
        *,
        producer: Producer,
        topic: str,
        definition_of: Callable[[Sequence[ScheduledChange]], LoadDefinition],
        rate_per_s: int,
        clock: Clock,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._rate_per_s = rate_per_s
        self._clock = clock
        self._emit = record_event
        self._measure = measure
        self._pending = PendingRanges()
        self._acknowledgements = AcknowledgementTimes()
        self._requests = ChangeRequests()
        self._change_log = WorkloadChangeLog(definition_of, clock.now_ns())
        self._pace = Pace(rate_per_s, clock.now_ns())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=PROCESS, daemon=True)
        self._rate = RateSampler(clock.now_ns())
        self.failure: str | None = None

    def begin(self) -> NumberedSender:
        self._thread.start()
        return self

    @property
    def sent(self) -> int:
        return self._pending.counts[SendStatus.ACKNOWLEDGED]

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

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

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:  # noqa: BLE001 - reported as `failure`, never hidden
            self.failure = f"the workload's sender failed: {type(error).__name__}: {error}"
        finally:
            self._finish()

    def _send_all(self) -> None:
        last_ns = recorded_ns = self._clock.now_ns()
        self._pace.change(self._rate_per_s, 0, last_ns)
        index, records = 0, self._change_log.definition.records
        while index < records and not self._stop.is_set():
            self._apply_requests(index)
            now_ns = self._clock.now_ns()
            due = self._pace.due(now_ns) - index
            size = min(due, 1 + MAX_CATCH_UP * self._pace.within(now_ns - last_ns), CHUNK_RECORDS)
            index = self._send(index, min(index + size, records))
            last_ns = now_ns
            if now_ns - recorded_ns >= RECORD_EVERY_S * 1e9:
                recorded_ns = now_ns
                self._record_progress()
            if size < CHUNK_RECORDS:
                spent_s = (self._clock.now_ns() - now_ns) / 1e9
                self._stop.wait(max(0.0, CHUNK_S - spent_s))
        self._requests.close(index)
        self._await_acknowledgements()

    def _apply_requests(self, index: int) -> None:
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
        self._pace.change(self._rate_per_s * self._change_log.factor(), change.at_record, now_ns)

    def _send(self, first: int, end: int) -> int:
        """Give the client the records before `end`. Returns the index of the next record, which is
        below `end` if the client's queue is full while a request or a stop is pending."""
        for record in self._change_log.definition.between(first, end):
            while not self._produce(record):
                self._producer.poll(CHUNK_S)
                if self._stop.is_set() or self._requests.has_any:
                    return record.index
        self._producer.poll(0)
        return max(first, end)

    def _produce(self, record: Record) -> bool:
        """Give one record to the client; False if the queue of the client is full."""
        on_delivery = partial(self._on_delivery, record.index, self._change_log.current_interval)
        try:
            self._producer.produce(
                self._topic, record.value(), record.key, record.partition, on_delivery=on_delivery
            )
        except BufferError:
            return False
        except KafkaException as rejection:
            if rejection.args[0].code() not in NOT_WRITTEN:
                raise
            self._pending.add(1)
            self._pending.settle(record.index, SendStatus.FAILED)
            return True
        self._pending.add(1)
        return True

    def _on_delivery(
        self, index: int, interval: ChangeInterval, error: KafkaError | None, message: Message
    ) -> None:
        now_ns = self._clock.now_ns()
        if error is None:
            status = SendStatus.ACKNOWLEDGED
            self._acknowledgements.acknowledged(now_ns)
            self._change_log.acknowledged(index, interval, message)
        else:
            status = SendStatus.FAILED if error.code() in NOT_WRITTEN else SendStatus.UNKNOWN
        self._pending.settle(index, status, now_ns)

    def _await_acknowledgements(self) -> None:
        """Wait until every send is settled, at the latest by its time limit, or until a stop."""
        while not self._stop.is_set() and self._producer.flush(RECORD_EVERY_S):
            self._record_progress()

    def _finish(self) -> None:
        try:
            if self._producer.flush(STOP_FLUSH_S):
                self._producer.purge()
                self._producer.flush(1)
        except KafkaException as error:
            self.failure = self.failure or f"the workload's last records: {error}"
        self._requests.close(self._change_log.definition.records)
        self._pending.settle_rest(SendStatus.UNKNOWN)
        self._record_progress()
        counts = {str(status): count for status, count in self._pending.counts.items()}
        self._record(Kind.OK if self.failure is None else Kind.FAIL, Action.WORKLOAD_DONE, counts)

    def _record_progress(self) -> None:
        for kind, value in sent_values(self._pending.take()):
            if value["status"] == SendStatus.ACKNOWLEDGED:
                value |= self._acknowledgements.take()
            self._record(kind, Action.SENT, value)
        now_ns = self._clock.now_ns()
        if (per_s := self._rate.sample(now_ns, self.sent)) is not None:
            self._measure("sent_per_s", PROCESS, per_s)
        self._change_log.mark(now_ns)

    def _record(self, kind: Kind, action: Action, value: dict[str, Any]) -> None:
        self._emit(
            EventDraft(
                at_ns=self._clock.now_ns(),
                process=PROCESS,
                kind=kind,
                action=action,
                value=value,
                error=self.failure,
            )
        )
