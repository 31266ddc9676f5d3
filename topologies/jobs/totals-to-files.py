# A running total per key: each record produces exactly one row, in files on HDFS. A file is
# committed when the sink's own log (`_spark_metadata`) lists it.
#
# streamquake:
#   outputs:
#     totals-files:
#       hdfs: /output/totals
#       identity: [key, seq]
#       compare: [total, records]
#   expected: >
#     SELECT key, seq,
#       SUM(amount) OVER so_far AS total,
#       COUNT(*) OVER so_far AS records
#     FROM sent
#     WINDOW so_far AS (PARTITION BY key ORDER BY seq)
"""Keyed running totals from a topic to files."""

from kafka_source import from_kafka
from pyspark.sql import SparkSession
from running_totals import running_totals

spark = SparkSession.builder.getOrCreate()
records = from_kafka(spark, bootstrap="${source.bootstrap}", topic="${input}")
fields = "'key STRING, seq BIGINT, amount BIGINT'"
amounts = records.selectExpr(f"from_json(value, {fields}) AS r").select("r.*")
writer = running_totals(amounts).writeStream.format("json").option("path", "${output.totals-files}")
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
