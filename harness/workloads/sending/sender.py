"""Sends records: one thread, one idempotent producer, at a given pace.

The client is confluent-kafka (librdkafka): beside a cluster on two cores kafka-python does not
reach 50,000 records per second (`tests/benchmarks/bench_producer.py` measures both).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar, Unpack

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.steering import SteerableLoad
from streamquake.harness.workloads.sending.acknowledgements import AcknowledgementTimes
from streamquake.harness.workloads.sending.pace import Pace
from streamquake.harness.workloads.sending.ranges import PendingRanges, SendStatus, sent_values
from streamquake.harness.workloads.sending.rate import RateSampler
from streamquake.reports.record.event import Action, EventDraft, Kind

PROCESS = "workload"
CHUNK_S = 0.025
"""Records are sent in chunks of this length: short enough for an even rate, long enough to be
cheap."""
CHUNK_RECORDS = 5_000
"""The largest chunk at very high rates, so that a stop or an event never waits long."""
RECORD_EVERY_S = 0.3
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


class Outgoing(Protocol):
    """A record to be sent."""

    @property
    def index(self) -> int:
        """Its number in the load, from 0."""
        ...

    @property
    def key(self) -> str | None:
        """Its Kafka key."""
        ...

    @property
    def partition(self) -> int:
        """The partition that it is sent to."""
        ...

    def value(self) -> bytes | None:
        """Its Kafka value; None for a tombstone."""
        ...


R = TypeVar("R", bound=Outgoing)
Delivered = Callable[[int, Message], None]
"""Called with the index of each acknowledged record."""


def producer_settings(brokers: KafkaConnection, delivery_timeout_s: float) -> dict[str, Any]:
    """Settings of the client: every send is settled within `delivery_timeout_s`."""
    return {
        **brokers.client_settings(),
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


class SenderArguments(TypedDict):
    """What every sender needs."""

    producer: Producer
    topic: str
    clock: Clock
    record_event: RecordEvent
    measure: RecordSample


class Sender(ABC, Generic[R]):
    """A `RunningWorkload` that sends the records 0 to `total` in their order."""

    def __init__(self, total: int, pace: Pace, **arguments: Unpack[SenderArguments]) -> None:
        self._total = total
        self._producer = arguments["producer"]
        self._topic = arguments["topic"]
        self._clock = clock = arguments["clock"]
        self._emit = arguments["record_event"]
        self._measure = arguments["measure"]
        self._pending = PendingRanges()
        self._acknowledgements = AcknowledgementTimes()
        self._pace = pace
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=PROCESS, daemon=True)
        self._rate = RateSampler(clock.now_ns())
        self.failure: str | None = None

    def begin(self) -> Self:
        self._thread.start()
        return self

    @property
    def sent(self) -> int:
        return self._pending.counts[SendStatus.ACKNOWLEDGED]

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    @property
    def steering(self) -> SteerableLoad | None:
        return None

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _records(self, first: int, end: int) -> Iterable[R]:
        """The records from index `first` to before `end`, in order."""

    def _topic_of(self, record: R) -> str:
        """The topic that a record is sent to."""
        return self._topic

    def _before_chunk(self, index: int) -> None:
        """Called in the sending thread before each chunk; record `index` is the next one."""

    @property
    def _must_pause(self) -> bool:
        """Whether something waits to be done before the next record."""
        return self._stop.is_set()

    def _delivery(self) -> Delivered | None:
        """What to call for each acknowledged record of those that are sent now."""
        return None

    def _all_sent(self, index: int) -> None:
        """Called when no record from `index` on will be sent."""

    def _progress_recorded(self, now_ns: int) -> None:
        """Called after each record of the progress."""

    def _run(self) -> None:
        try:
            self._send_all()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - reported as `failure`
            self.failure = f"the workload's sender failed: {type(error).__name__}: {error}"
        finally:
            self._finish()

    def _send_all(self) -> None:
        index = self._send_first()
        last_ns = recorded_ns = self._clock.now_ns()
        self._pace.begin(last_ns)
        while index < self._total and not self._stop.is_set():
            self._before_chunk(index)
            now_ns = self._clock.now_ns()
            due = self._pace.due(now_ns) - index
            size = min(due, self._pace.most(last_ns, now_ns), CHUNK_RECORDS)
            index = self._send(index, min(index + size, self._total))
            last_ns = now_ns
            if now_ns - recorded_ns >= RECORD_EVERY_S * 1e9:
                recorded_ns = now_ns
                self._record_progress()
            if size < CHUNK_RECORDS:
                spent_s = (self._clock.now_ns() - now_ns) / 1e9
                self._stop.wait(max(0.0, CHUNK_S - spent_s))
        self._all_sent(index)
        self._await_acknowledgements()

    def _send_first(self) -> int:
        """Send the first record alone, and wait until its send is settled. The client connects for
        it, which takes seconds on a busy machine: what was due meanwhile would follow in a burst.
        Returns the index of the next record."""
        self._before_chunk(0)
        index = self._send(0, min(1, self._total))
        while not self._stop.is_set() and self._producer.flush(CHUNK_S):
            self._before_chunk(index)
        return index

    def _send(self, first: int, end: int) -> int:
        """Give the client the records before `end`. Returns the index of the next record, which is
        below `end` if the client's queue is full while a request or a stop is pending."""
        delivered = self._delivery()
        for record in self._records(first, end):
            while not self._produce(record, delivered):
                self._producer.poll(CHUNK_S)
                if self._must_pause:
                    return record.index
        self._producer.poll(0)
        return max(first, end)

    def _produce(self, record: R, delivered: Delivered | None) -> bool:
        """Give one record to the client; False if the queue of the client is full."""
        try:
            self._producer.produce(
                self._topic_of(record),
                record.value(),
                record.key,
                record.partition,
                on_delivery=partial(self._on_delivery, record.index, delivered),
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
        self, index: int, delivered: Delivered | None, error: KafkaError | None, message: Message
    ) -> None:
        now_ns = self._clock.now_ns()
        if error is None:
            status = SendStatus.ACKNOWLEDGED
            self._acknowledgements.acknowledged(now_ns)
            if delivered is not None:
                delivered(index, message)
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
        self._all_sent(self._total)
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
        self._progress_recorded(now_ns)

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
