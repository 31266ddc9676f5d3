"""`hdfs://host:port/path`: files on HDFS, through the Hadoop client of Spark."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.file_source import FileSource
from streamquake.harness.reconcile.reading.source import ReadRequest, sources
from streamquake.harness.reconcile.reading.table import Table
from streamquake.topologies.problems import bad_input

RETRY_SETTINGS = {
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "2",
    "ipc.client.connect.max.retries.on.timeouts": "2",
    "ipc.client.rpc-timeout.ms": "30000",
}
"""The defaults of Hadoop retry for a quarter of an hour (org.apache.hadoop.ipc.Client)."""


@sources.register
class Hdfs(FileSource):
    """Files, folders and patterns on HDFS."""

    name: ClassVar[str] = "hdfs"

    def inspect(self) -> int | None:
        for uri in self.uris:
            if not urlsplit(uri).hostname:
                message = "expected hdfs://host:port/path, got no host"
                raise bad_input(uri, message)
        return None

    def read(self, spark: SparkSession, request: ReadRequest) -> Table:
        context: Any = spark.sparkContext
        settings = context._jsc.hadoopConfiguration()
        for name, value in RETRY_SETTINGS.items():
            settings.set(name, value)
        return super().read(spark, request)
