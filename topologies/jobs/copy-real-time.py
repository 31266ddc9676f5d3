# Every record is copied unchanged, as in copy.py, but in Spark's real-time mode: the trigger sets
# the length of a batch, and its tasks write each record as soon as they have read it.
#
# PySpark has no API for that trigger, so the program takes it from the JVM. This mode rejects
# operators in Python, aggregations and exchanges. The sink is Spark's own, which is at least once.
#
# streamquake:
#   outputs:
#     copies:
#       kafka: copies
#       identity: [key, seq]
#       compare: [index, event_time_ms, amount, payload, checksum]
#       order: seq
#   expected: SELECT key, seq, index, event_time_ms, amount, payload, checksum FROM sent
"""A stateless copy from topic to topic in real-time mode."""

from kafka_sink import to_kafka
from kafka_source import from_kafka
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
writer = to_kafka(
    from_kafka(spark, bootstrap="${source.bootstrap}", topic="${input}"),
    bootstrap="${sink.bootstrap}",
    topic="${output.copies}",
    name="${run}-copies",
    guarantee="${sink.guarantee}",
    timeout_ms="${sink.transaction-timeout-ms}",
)
assert spark._jvm is not None
trigger = spark._jvm.org.apache.spark.sql.streaming.Trigger.RealTime("5 seconds")
writer._jwrite = writer.outputMode("update")._jwrite.trigger(trigger)
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
