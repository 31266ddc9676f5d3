# Each record with its price after a discount, which a module of one's own computes.
#
# streamquake:
#   outputs:
#     prices:
#       kafka: prices
#       identity: [key, seq]
#       compare: [price]
#       order: seq
#   expected: SELECT key, seq, amount - amount DIV 10 AS price FROM sent
"""Prices after a discount, from topic to topic."""

from kafka_sink import to_kafka
from kafka_source import from_kafka
from prices import discounted
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
records = from_kafka(spark, bootstrap="${source.bootstrap}", topic="${input}")
orders = records.selectExpr("from_json(value, 'key STRING, seq BIGINT, amount BIGINT') AS r")
prices = orders.select("r.key", "r.seq", discounted(orders["r.amount"]).alias("price"))
writer = to_kafka(
    prices.selectExpr("key", "to_json(struct(*)) AS value"),
    bootstrap="${sink.bootstrap}",
    topic="${output.prices}",
    name="${run}-prices",
    guarantee="${sink.guarantee}",
    timeout_ms="${sink.transaction-timeout-ms}",
)
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
