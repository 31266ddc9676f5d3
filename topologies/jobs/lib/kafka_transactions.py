"""An exactly-once Kafka sink for Structured Streaming; Spark's own sink is at least once.

Each partition of a micro-batch is written in its own transaction. The same transaction commits the
number of the batch, as the offset of a consumer group without consumers. If the task, its executor
or the driver is lost before the batch is committed, Spark repeats the partition; the sink then
reads that number and writes nothing.

This relies on Spark's guarantee for a repeated batch: the same input offsets, and with the same
number of partitions the same rows in each. `transactional.id` contains the partition, so an attempt
that still writes when a later one starts is fenced, and its transaction is aborted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class KafkaTransactions:
    """The sink of one query; for `writeStream.foreachBatch`. Rows have the columns `key` and
    `value`, both strings."""

    bootstrap: str
    topic: str
    name: str
    """Unique to the query, and the same after each restart of it."""
    timeout_ms: int
    """How long a transaction may stay open before the brokers abort it."""

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.foreachPartition(lambda rows: self.write(rows, number))

    def write(self, rows: Iterable[Row], number: int) -> None:
        """Write one partition of a batch, unless it is committed already. Raises KafkaException, so
        that Spark starts another attempt."""
        task = TaskContext.get()
        assert task is not None, "only a task calls this"
        name = f"{self.name}-{task.partitionId()}"
        producer = self._producer(name)
        producer.init_transactions(TIMEOUT_S)  # until then an earlier attempt may still commit
        offsets = Consumer({"bootstrap.servers": self.bootstrap, "group.id": name})
        try:
            (committed,) = offsets.committed([TopicPartition(self.topic, 0)], timeout=TIMEOUT_S)
            if committed.offset > number:
                return
            producer.begin_transaction()
            for row in rows:
                _produce(producer, self.topic, row)
            written = [TopicPartition(self.topic, 0, number + 1)]
            group = offsets.consumer_group_metadata()
            producer.send_offsets_to_transaction(written, group, TIMEOUT_S)
            producer.commit_transaction(TIMEOUT_S)
        finally:
            offsets.close()

    def _producer(self, name: str) -> Producer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": self.timeout_ms,
            "message.timeout.ms": self.timeout_ms,
            "linger.ms": 20,
            # The partitioner of the Java clients, which Spark's own sink uses.
            "partitioner": "murmur2_random",
        }
        return Producer(settings)


def _produce(producer: Producer, topic: str, row: Row) -> None:
    while True:
        try:
            producer.produce(topic, row["value"], row["key"])
            producer.poll(0)
            return
        except BufferError:  # the queue is full: the brokers are slower than the query
            producer.poll(0.1)
