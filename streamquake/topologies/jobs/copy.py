# Every record goes through unchanged: one stage without an exchange, a task for each partition of
# the input.
#
# streamquake:
#   outputs:
#     copies:
#       kafka: copies
#       identity: [key, seq]
#       compare: [index, event_time_ms, amount, payload, checksum]
#       order: seq
#   expected: SELECT key, seq, index, event_time_ms, amount, payload, checksum FROM sent
"""A stateless copy from topic to topic."""

from kafka_sink import to_kafka
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
source = {
    "kafka.bootstrap.servers": "${source.bootstrap}",
    "subscribe": "${input}",
    "startingOffsets": "earliest",
}
records = spark.readStream.format("kafka").options(**source).load()
writer = to_kafka(
    records.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value"),
    bootstrap="${sink.bootstrap}",
    topic="${output.copies}",
    name="${run}-copies",
    guarantee="${sink.guarantee}",
    timeout_ms="${sink.transaction-timeout-ms}",
)
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
