# Every record goes through unchanged, as in copy.py, but in Spark's real-time mode: a batch lasts
# as long as its trigger says, and its tasks write what they read at once.
#
# PySpark has no word for that trigger, so it comes from the virtual machine. Operators in Python,
# aggregations and exchanges are refused in this mode, and of the sinks here Spark's own is taken,
# which is at least once.
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
