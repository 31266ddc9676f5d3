"""The session in which data are read that Streamquake did not write: a run's files, and both sides
of the `reconcile` command."""

from __future__ import annotations

from pyspark.sql import SparkSession

SETTINGS = {
    # `id` and `ID` are two fields of a JSON object.
    "spark.sql.caseSensitive": "true",
    # Nanoseconds do not go into Spark's timestamps; as numbers they stay exact.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A time without a zone is UTC here, in Parquet as in text.
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    # What is kept of a column begins with two kilobytes for each row of a batch, which are 10,000
    # by default: a hundred fields of JSON would take all memory.
    "spark.sql.inMemoryColumnarStorage.batchSize": "200",
}


def reading_session(spark: SparkSession) -> SparkSession:
    """A session of its own beside `spark`, with `SETTINGS`."""
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session
