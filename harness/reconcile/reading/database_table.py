"""A table of PostgreSQL: its address, and its rows, through Spark's JDBC source.

The database itself writes each row as JSON text (`row_to_json`). So numbers keep all of their
digits, and a table is judged by the same rules as a topic of JSON. Times with a zone are in UTC.
Sources: https://www.postgresql.org/docs/current/functions-json.html,
https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.cluster.images.build import host_jars
from streamquake.harness.reconcile.reading.database_address import PASSWORD, SCHEME, TableAddress
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.topologies.errors import (
    CAUSED_BY,
    ErrorKind,
    StreamquakeError,
    message_of,
    root_cause,
)

TABLE_PLACE = ("table", "row")
"""The columns with the place of a row."""
CONNECT_S, SILENT_S = 10, 120
"""How long a connection may take, and how long the database may send nothing."""
NOISE = re.compile(r"org\.postgresql\.util\.PSQLException: |\s+Position: \d+$")
"""What the driver's errors have beside the database's own words."""
ROWS_AT_ONCE = 10_000
"""Rows that the driver holds; without a number it would hold all of them."""
IN_UTC = "SET TIME ZONE 'UTC'"


class DatabaseUnreadable(StreamquakeError, ConnectionError):
    """A table could not be read; the message has the database's own words."""

    kind = ErrorKind.CLUSTER_FAILED


def rows_at_once(spark: SparkSession, address: TableAddress) -> tuple[DataFrame, int]:
    """The committed rows of a table (`value`: each as JSON), read once and persisted, and their
    number. Raises DatabaseUnreadable."""
    with _failures_of(address):
        rows = _rows(spark, address).persist()
        return rows, rows.count()


def prepared_transactions(spark: SparkSession, address: TableAddress) -> int:
    """How many transactions changed the table and were prepared (XA), and are neither committed nor
    rolled back. Readers do not see their changes. Raises DatabaseUnreadable.

    Source: https://www.postgresql.org/docs/current/view-pg-locks.html: a prepared transaction keeps
    its locks, and has no process.
    """
    table = address.quoted.replace("'", "''")
    query = (
        "SELECT count(DISTINCT virtualtransaction) AS transactions FROM pg_locks "
        "WHERE pid IS NULL AND locktype = 'relation' AND mode = 'RowExclusiveLock' "
        f"AND relation = '{table}'::regclass "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with _failures_of(address):
        (found,) = _query(spark, address, query).collect()
    return int(found.transactions)


def read_table(
    spark: SparkSession, address: TableAddress, *, into: StoredOutput, source: str
) -> None:
    """Store the rows of a table. `source` is its address in the experiment. Raises
    DatabaseUnreadable."""
    # Before the rows: a transaction that is committed in between is counted, none is missed.
    prepared = prepared_transactions(spark, address)
    with _failures_of(address):
        store_rows(_rows(spark, address), address, into=into, source=source, prepared=prepared)


def store_rows(
    rows: DataFrame, address: TableAddress, *, into: StoredOutput, source: str, prepared: int
) -> None:
    """Store rows (`value`: each as JSON) as those of a table, with `TABLE_PLACE`."""
    with_place(rows, address).write.parquet(str(into.part("json")))
    into.finish({"kind": "table", "source": source, "records": into.rows(), "prepared": prepared})


def with_place(rows: DataFrame, address: TableAddress) -> DataFrame:
    """Rows with `TABLE_PLACE`: the table, and a number of the reading. Rows have no order."""
    names = (F.lit(address.name), F.monotonically_increasing_id())
    return rows.select("value", *map(Column.alias, names, TABLE_PLACE))


def _rows(spark: SparkSession, address: TableAddress) -> DataFrame:
    # `r.*` is the whole row also where a column is called `r`.
    query = f"SELECT row_to_json(r.*)::text AS value FROM {address.quoted} AS r"
    return _query(spark, address, query)


def _query(spark: SparkSession, address: TableAddress, query: str) -> DataFrame:
    for jar in host_jars("spark-postgresql"):
        spark.sql(f"ADD JAR '{jar}'")
    url = f"jdbc:{SCHEME}://{address.servers}/{quote(address.database, safe='')}"
    limits = f"connectTimeout={CONNECT_S}&socketTimeout={SILENT_S}"
    options = {
        "url": f"{url}?{limits}&ApplicationName=streamquake",
        "driver": "org.postgresql.Driver",
        "fetchsize": str(ROWS_AT_ONCE),
        "sessionInitStatement": IN_UTC,
        "query": query,
    }
    if address.user is not None:
        options["user"] = address.user
    if password := os.environ.get(PASSWORD):
        options["password"] = password
    return spark.read.format("jdbc").options(**options).load()


@contextmanager
def _failures_of(address: TableAddress) -> Iterator[None]:
    """Raise failures to read a table as DatabaseUnreadable."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        why = NOISE.sub("", root_cause(text) if CAUSED_BY in text else message_of(error))
        where = f"the table {address.name} of {address.database} at {address.servers}"
        hint = f"; set {PASSWORD} in the environment" if "password" in why else ""
        raise DatabaseUnreadable(f"{where} cannot be read: {why}{hint}") from error
