"""Sends the records: one thread, one idempotent producer, an even rate, and no ledger.

The client is confluent-kafka (librdkafka): beside a cluster on two cores kafka-python does not
hold 50,000 records a second (`tests/benchmarks/bench_producer.py` measures both).
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streamquake.cluster.clock import Clock
from streamquake.cluster.engine import Emit, Measure
from streamquake.harness.workloads.numbered.ranges import Settling, Status, notes_of
from streamquake.harness.workloads.numbered.records import Recipe, Record
from streamquake.reports.event import Action, Kind, Note

PROCESS = "workload"
CHUNK_S = 0.025
"""Records go out in chunks of this length: short enough to look even, long enough to be cheap."""
CHUNK_RECORDS = 5_000
"""Bounds a chunk at very high rates, so that stopping and noting never wait long."""
NOTE_S = 0.3
CATCH_UP = 2
"""After a stall the load runs at most this many times its rate, instead of in one burst."""
STOP_FLUSH_S = 10
MAX_UNDER_WAY = 100_000
"""Bounds the client's memory; beyond it the sender waits for acknowledgements."""
REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
"""Errors after which the record certainly stands nowhere; after any other nobody knows."""


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
        "queue.buffering.max.messages": MAX_UNDER_WAY,
        "log_level": 2,
    }


class NumberedSender:
    """A `RunningWorkload` that sends the records of one recipe."""

    def __init__(
        self,
        *,
        producer: Producer,
        topic: str,
        recipe: Recipe,
        rate_per_s: int,
        clock: Clock,
        emit: Emit,
        measure: Measure,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._recipe = recipe
        self._rate_per_s = rate_per_s
        self._clock = clock
        self._emit = emit
        self._measure = measure
        self._settling = Settling()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=PROCESS, daemon=True)
        self._measured = (clock.now_ns(), 0)
        self.failure: str | None = None

    def begin(self) -> NumberedSender:
        self._thread.start()
        return self

    @property
    def sent(self) -> int:
        return self._settling.counts[Status.ACKNOWLEDGED]

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:  # noqa: BLE001 - the guard: told as `failure`, never hidden
            self.failure = f"the workload's sender broke: {type(error).__name__}: {error}"
        finally:
            self._finish()

    def _send_all(self) -> None:
        began_ns = before_ns = noted_ns = self._clock.now_ns()
        index = 0
        while index < self._recipe.records and not self._stop.is_set():
            now_ns = self._clock.now_ns()
            due = 1 + self._in(now_ns - began_ns) - index
            size = min(due, 1 + CATCH_UP * self._in(now_ns - before_ns), CHUNK_RECORDS)
            index = self._send(index, min(index + size, self._recipe.records))
            before_ns = now_ns
            if now_ns - noted_ns >= NOTE_S * 1e9:
                noted_ns = now_ns
                self._note()
            if size < CHUNK_RECORDS:
                spent_s = (self._clock.now_ns() - now_ns) / 1e9
                self._stop.wait(max(0.0, CHUNK_S - spent_s))
        self._await_acknowledgements()

    def _in(self, nanoseconds: int) -> int:
        """How many records fall into a stretch of time."""
        return nanoseconds * self._rate_per_s // 1_000_000_000

    def _send(self, first: int, end: int) -> int:
        """Hand records to the client until it has all before `end`; returns where it stopped."""
        for record in self._recipe.between(first, end):
            while not self._hand_over(record):
                self._producer.poll(CHUNK_S)
                if self._stop.is_set():
                    return record.index
        self._producer.poll(0)
        return max(first, end)

    def _hand_over(self, record: Record) -> bool:
        """Hand one record to the client; False while its queue is full."""
        on_delivery = partial(self._settled, record.index)
        try:
            self._producer.produce(
                self._topic, record.value(), record.key, record.partition, on_delivery=on_delivery
            )
        except BufferError:
            return False
        except KafkaException as refusal:
            if refusal.args[0].code() not in REFUSED:
                raise
            self._settling.sending(1)
            self._settling.settle(record.index, Status.FAILED)
            return True
        self._settling.sending(1)
        return True

    def _settled(self, index: int, error: KafkaError | None, _: Message) -> None:
        if error is None:
            status = Status.ACKNOWLEDGED
        else:
            status = Status.FAILED if error.code() in REFUSED else Status.UNKNOWN
        self._settling.settle(index, status)

    def _await_acknowledgements(self) -> None:
        """Every send is settled by its own time limit; a stop shortens the wait."""
        while not self._stop.is_set() and self._producer.flush(NOTE_S):
            self._note()

    def _finish(self) -> None:
        try:
            if self._producer.flush(STOP_FLUSH_S):
                self._producer.purge()
                self._producer.flush(1)
        except KafkaException as error:
            self.failure = self.failure or f"the workload's last records: {error}"
        self._settling.settle_rest(Status.UNKNOWN)
        self._note()
        counts = {str(status): count for status, count in self._settling.counts.items()}
        self._tell(Kind.OK if self.failure is None else Kind.FAIL, Action.WORKLOAD_DONE, counts)

    def _note(self) -> None:
        for kind, value in notes_of(self._settling.take()):
            self._tell(kind, Action.SENT, value)
        before_ns, before = self._measured
        now_ns, acknowledged = self._clock.now_ns(), self.sent
        if now_ns > before_ns:
            per_s = (acknowledged - before) / ((now_ns - before_ns) / 1e9)
            self._measure("sent_per_s", PROCESS, per_s)
        self._measured = (now_ns, acknowledged)

    def _tell(self, kind: Kind, action: Action, value: dict[str, Any]) -> None:
        self._emit(
            Note(
                at_ns=self._clock.now_ns(), process=PROCESS, kind=kind, action=action,
                value=value, error=self.failure,
            )
        )  # fmt: skip
