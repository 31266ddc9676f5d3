"""A Kafka sink for Structured Streaming that is exactly-once, as Spark's own is not.

Each partition of a micro-batch is written in one transaction of its own, and the number of the
batch is committed in the same transaction, as the offset of a consumer group without consumers
with. A partition that is written again, since its task, its executor or the driver was lost before
the batch was committed, finds that number and writes nothing.

It rests on what Spark promises of a batch that is run again: the same input offsets, and with as
many partitions the same rows in each. `transactional.id` names the partition, so an attempt that
still writes while a later one begins is fenced and its transaction ended.
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
    """Unique to the query and the same whenever it is started again."""
    timeout_ms: int
    """How long a transaction may stay open before the brokers end it."""

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.foreachPartition(lambda rows: self.write(rows, number))

    def write(self, rows: Iterable[Row], number: int) -> None:
        """Write one partition of a batch, unless that has been done. Raises KafkaException, so that
        Spark makes another attempt."""
        task = TaskContext.get()
        assert task is not None, "this is called by a task"
        name = f"{self.name}-{task.partitionId()}"
        producer = self._producer(name)
        producer.init_transactions(TIMEOUT_S)  # until then an earlier one may still commit
        mark = Consumer({"bootstrap.servers": self.bootstrap, "group.id": name})
        try:
            (done,) = mark.committed([TopicPartition(self.topic, 0)], timeout=TIMEOUT_S)
            if done.offset > number:
                return
            producer.begin_transaction()
            for row in rows:
                _produce(producer, self.topic, row)
            written = [TopicPartition(self.topic, 0, number + 1)]
            group = mark.consumer_group_metadata()
            producer.send_offsets_to_transaction(written, group, TIMEOUT_S)
            producer.commit_transaction(TIMEOUT_S)
        finally:
            mark.close()

    def _producer(self, name: str) -> Producer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": self.timeout_ms,
            "message.timeout.ms": self.timeout_ms,
            "linger.ms": 20,
            # As Java's clients partition, Spark's own sink among them.
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
