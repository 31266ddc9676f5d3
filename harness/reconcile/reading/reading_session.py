"""The Spark session for data that Streamquake did not write: the outputs of a run, and both sides
of the `reconcile` command."""

from __future__ import annotations

from pyspark.sql import SparkSession

SETTINGS = {
    # `id` and `ID` are two fields of a JSON object.
    "spark.sql.caseSensitive": "true",
    # Spark's timestamps have no nanoseconds; as numbers they stay exact.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A time without a zone is UTC, in Parquet as in text.
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    # A persisted column takes two kilobytes at first for each row of a batch. With the default of
    # 10,000 rows, a hundred fields of JSON would take all memory.
    "spark.sql.inMemoryColumnarStorage.batchSize": "200",
}


def reading_session(spark: SparkSession) -> SparkSession:
    """A new session beside `spark`, with `SETTINGS`."""
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session
