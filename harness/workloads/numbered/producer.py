"""Sends the records: one thread, one idempotent producer, an even rate, and no ledger.

While it runs its load can be changed: requests are queued, and the sending thread applies each
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
from streamquake.harness.workloads.numbered.change_log import ChangeInterval, WorkloadChangeLog
from streamquake.harness.workloads.numbered.change_requests import ChangeRequests
from streamquake.harness.workloads.numbered.pace import Pace
from streamquake.harness.workloads.numbered.ranges import PendingRanges, SendStatus, notes_of
from streamquake.harness.workloads.numbered.rate import RateSampler
from streamquake.harness.workloads.numbered.records import LoadDefinition, Record
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.reports.record.event import Action, EventDraft, Kind

PROCESS = "workload"
CHUNK_S = 0.025
"""Records are sent in chunks of this length: short enough for an even rate, long enough to be
cheap."""
CHUNK_RECORDS = 5_000
"""Limits a chunk at very high rates, so that stopping and recording never wait long."""
NOTE_S = 0.3
CATCH_UP = 2
"""After a stall the load runs at most at this multiple of its rate, instead of in one burst."""
STOP_FLUSH_S = 10
MAX_UNDER_WAY = 100_000
MAX_UNDER_WAY_KB = 1 << 16
"""Both limit the client's memory; beyond them the sender waits for acknowledgements."""
REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
"""Errors after which the record was certainly not written; after any other this is unknown."""


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
        "queue.buffering.max.kbytes": MAX_UNDER_WAY_KB,
        "log_level": 2,
    }


class NumberedSender:
    """A `RunningWorkload` that sends the records of a recipe, and a `Steering`."""

    def __init__(
        self,
        *,
        producer: Producer,
        topic: str,
        recipe_of: Callable[[Sequence[ScheduledChange]], LoadDefinition],
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
        self._settling = PendingRanges()
        self._orders = ChangeRequests()
        self._change_log = WorkloadChangeLog(recipe_of, clock.now_ns())
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
        return self._settling.counts[SendStatus.ACKNOWLEDGED]

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    @property
    def steering(self) -> NumberedSender:
        return self

    def steer(self, disturbance: str, parameters: Mapping[str, Any]) -> int:
        """Raises WorkloadFinished when everything has been sent."""
        ScheduledChange(0, disturbance, parameters).build_fault()
        return self._orders.give(disturbance, parameters)

    def settle(self, disturbance: str) -> int:
        return self._orders.give(disturbance, None)

    def sent_under(self, disturbance: str) -> Mapping[str, Any]:
        figures = self._change_log.sent_under(disturbance, self._clock.now_ns())
        over = self._orders.over
        return {**figures, "active": figures["active"] and not over, "finished": over}

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:  # noqa: BLE001 - the guard: reported as `failure`, never hidden
            self.failure = f"the workload's sender failed: {type(error).__name__}: {error}"
        finally:
            self._finish()

    def _send_all(self) -> None:
        before_ns = noted_ns = self._clock.now_ns()
        self._pace.change(self._rate_per_s, 0, before_ns)
        index, records = 0, self._change_log.recipe.records
        while index < records and not self._stop.is_set():
            self._take_orders(index)
            now_ns = self._clock.now_ns()
            due = self._pace.due(now_ns) - index
            size = min(due, 1 + CATCH_UP * self._pace.within(now_ns - before_ns), CHUNK_RECORDS)
            index = self._send(index, min(index + size, records))
            before_ns = now_ns
            if now_ns - noted_ns >= NOTE_S * 1e9:
                noted_ns = now_ns
                self._note()
            if size < CHUNK_RECORDS:
                spent_s = (self._clock.now_ns() - now_ns) / 1e9
                self._stop.wait(max(0.0, CHUNK_S - spent_s))
        self._orders.close(index)
        self._await_acknowledgements()

    def _take_orders(self, index: int) -> None:
        """Apply the queued requests, from record `index` on."""
        for order in self._orders.waiting():
            change = ScheduledChange(index, order.disturbance, order.parameters)
            try:
                self._turn(change)
            except ValueError as wrong:
                order.answer.set_exception(wrong)
            else:
                order.answer.set_result(index)

    def _turn(self, apply_change: ScheduledChange) -> None:
        now_ns = self._clock.now_ns()
        if not self._change_log.apply_change(apply_change, now_ns):
            return
        self._report(Kind.INFO, Action.WORKLOAD_STEERED, apply_change._asdict())
        self._pace.change(
            self._rate_per_s * self._change_log.factor(), apply_change.at_record, now_ns
        )

    def _send(self, first: int, end: int) -> int:
        """Pass records to the client until it has all before `end`; returns where it stopped."""
        for record in self._change_log.recipe.between(first, end):
            while not self._hand_over(record):
                self._producer.poll(CHUNK_S)
                if self._stop.is_set() or self._orders.any:
                    return record.index
        self._producer.poll(0)
        return max(first, end)

    def _hand_over(self, record: Record) -> bool:
        """Pass one record to the client; False while its queue is full."""
        on_delivery = partial(self._settled, record.index, self._change_log.current_interval)
        try:
            self._producer.produce(
                self._topic, record.value(), record.key, record.partition, on_delivery=on_delivery
            )
        except BufferError:
            return False
        except KafkaException as rejection:
            if rejection.args[0].code() not in REFUSED:
                raise
            self._settling.sending(1)
            self._settling.settle(record.index, SendStatus.FAILED)
            return True
        self._settling.sending(1)
        return True

    def _settled(
        self, index: int, interval: ChangeInterval, error: KafkaError | None, message: Message
    ) -> None:
        if error is None:
            status = SendStatus.ACKNOWLEDGED
            self._change_log.acknowledged(index, interval, message)
        else:
            status = SendStatus.FAILED if error.code() in REFUSED else SendStatus.UNKNOWN
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
        self._orders.close(self._change_log.recipe.records)
        self._settling.settle_rest(SendStatus.UNKNOWN)
        self._note()
        counts = {str(status): count for status, count in self._settling.counts.items()}
        self._report(Kind.OK if self.failure is None else Kind.FAIL, Action.WORKLOAD_DONE, counts)

    def _note(self) -> None:
        for kind, value in notes_of(self._settling.take()):
            self._report(kind, Action.SENT, value)
        now_ns = self._clock.now_ns()
        if (per_s := self._rate.sample(now_ns, self.sent)) is not None:
            self._measure("sent_per_s", PROCESS, per_s)
        self._change_log.mark(now_ns)

    def _report(self, kind: Kind, action: Action, value: dict[str, Any]) -> None:
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
