# Every record is copied unchanged: one stage without an exchange, with one task per partition of
# the input. The job's `args` are options of the writer, NAME=VALUE.
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

import sys

from kafka_sink import to_kafka
from kafka_source import from_kafka
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
records = from_kafka(spark, bootstrap="${source.bootstrap}", topic="${input}")
writer = to_kafka(
    records,
    bootstrap="${sink.bootstrap}",
    topic="${output.copies}",
    name="${run}-copies",
    guarantee="${sink.guarantee}",
    timeout_ms="${sink.transaction-timeout-ms}",
)
writer.options(**dict(option.split("=", 1) for option in sys.argv[1:]))
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
