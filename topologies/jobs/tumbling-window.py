# Records and amounts per key in windows of ten seconds of event time.
#
# Spark has one watermark for the whole query, two seconds behind the newest record of any
# partition; a window closes in the batch after the one that moved the watermark past its end. The
# windows around the end of the load never close, and are not expected. A record of a partition that
# lags by two seconds of event time behind another would be dropped. None is: the load sends its
# records in the order of their event time, and a batch reads all partitions to their ends.
#
# streamquake:
#   lateness_ms: 2000
#   outputs:
#     windows:
#       kafka: windows
#       identity: [key, window_start_ms]
#       compare: [records, amount]
#   expected: >
#     SELECT key, window_start_ms, COUNT(*) AS records, SUM(amount) AS amount
#     FROM (SELECT *, event_time_ms - event_time_ms % 10000 AS window_start_ms FROM sent)
#     WHERE window_start_ms + 10000 <= (SELECT MAX(event_time_ms) - 2000 FROM sent)
#     GROUP BY key, window_start_ms
"""Tumbling windows of event time from topic to topic."""

from kafka_sink import to_kafka
from kafka_source import from_kafka
from pyspark.sql import SparkSession
from pyspark.sql.functions import count, expr, timestamp_millis, window
from pyspark.sql.functions import sum as total

spark = SparkSession.builder.getOrCreate()
records = from_kafka(spark, bootstrap="${source.bootstrap}", topic="${input}")
fields = "'key STRING, event_time_ms BIGINT, amount BIGINT'"
windows = (
    records.selectExpr(f"from_json(value, {fields}) AS r")
    .select("r.key", "r.amount", timestamp_millis("r.event_time_ms").alias("event_time"))
    .withWatermark("event_time", "2 seconds")
    .groupBy("key", window("event_time", "10 seconds"))
    .agg(count("*").alias("records"), total("amount").alias("amount"))
    .withColumn("window_start_ms", expr("unix_millis(window.start)"))
)
value = "to_json(struct(key, window_start_ms, records, amount)) AS value"
writer = to_kafka(
    windows.selectExpr("key", value),
    bootstrap="${sink.bootstrap}",
    topic="${output.windows}",
    name="${run}-windows",
    guarantee="${sink.guarantee}",
    timeout_ms="${sink.transaction-timeout-ms}",
)
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
