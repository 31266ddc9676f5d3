# A running total per key, written only to a topic: each record produces exactly one row. One keyed
# exchange, and state in the state store of the topology (RocksDB).
#
# streamquake:
#   outputs:
#     totals:
#       kafka: totals
#       identity: [key, seq]
#       compare: [total, records]
#       order: seq
#   expected: >
#     SELECT key, seq,
#       SUM(amount) OVER so_far AS total,
#       COUNT(*) OVER so_far AS records
#     FROM sent
#     WINDOW so_far AS (PARTITION BY key ORDER BY seq)
"""Keyed running totals from topic to topic."""

from kafka_sink import to_kafka
from kafka_source import from_kafka
from pyspark.sql import SparkSession
from running_totals import running_totals

spark = SparkSession.builder.getOrCreate()
records = from_kafka(spark, bootstrap="${source.bootstrap}", topic="${input}")
fields = "'key STRING, seq BIGINT, amount BIGINT'"
amounts = records.selectExpr(f"from_json(value, {fields}) AS r").select("r.*")
writer = to_kafka(
    running_totals(amounts).selectExpr("key", "to_json(struct(*)) AS value"),
    bootstrap="${sink.bootstrap}",
    topic="${output.totals}",
    name="${run}-totals",
    guarantee="${sink.guarantee}",
    timeout_ms="${sink.transaction-timeout-ms}",
)
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
