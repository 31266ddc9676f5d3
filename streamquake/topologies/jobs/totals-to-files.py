# A running total per key: each record gives exactly one row, in files on HDFS. Committed are those
# files that the sink's own log (`_spark_metadata`) lists.
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

from pyspark.sql import SparkSession
from running_totals import running_totals

spark = SparkSession.builder.getOrCreate()
source = {
    "kafka.bootstrap.servers": "${source.bootstrap}",
    "subscribe": "${input}",
    "startingOffsets": "earliest",
}
records = (
    spark.readStream.format("kafka")
    .options(**source)
    .load()
    .selectExpr("from_json(CAST(value AS STRING), 'key STRING, seq BIGINT, amount BIGINT') AS r")
    .select("r.*")
)
writer = running_totals(records).writeStream.format("json").option("path", "${output.totals-files}")
writer.option("checkpointLocation", "${checkpoint}").start().awaitTermination()
