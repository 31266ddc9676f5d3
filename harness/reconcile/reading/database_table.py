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
from dataclasses import dataclass
from urllib.parse import quote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.reconcile.reading.database_address import PASSWORD, SCHEME, TableAddress
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.topologies.errors import (
    ErrorKind,
    StreamquakeError,
    message_of,
)

TABLE_PLACE = ("table", "row")
"""The columns with the place of a row."""
CONNECT_S, SILENT_S = 10, 600
"""How long a connection may take, and how long the database may send nothing."""
LOGIN = re.compile(r"password authentication failed|no password was provided")
SAID = re.compile(r"org\.postgresql\.util\.PSQLException: (.+?)(?: Position: \d+)?$", re.MULTILINE)
"""The database's own words in an error of Java."""
FIRST_OWN = 16384
"""Tables with lower numbers are those of PostgreSQL itself (FirstNormalObjectId)."""
ROWS_AT_ONCE = 10_000
"""Rows that the driver holds; without a number it would hold all of them."""
SETTINGS = {
    # Otherwise policies would silently hide rows from this user.
    "row_security": "off",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "IntervalStyle": "postgres",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "standard_conforming_strings": "on",
    "lock_timeout": "30s",
}
"""The settings of the session. Those of a role or a database may change how values are written."""


class DatabaseUnreadable(StreamquakeError, ConnectionError):
    """A table could not be read; the message has the database's own words."""

    kind = ErrorKind.CLUSTER_FAILED


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """What one reading of a table found."""

    frame: DataFrame
    """The committed rows of one moment (`value`: each as JSON), persisted."""
    count: int
    prepared: int
    """The `prepared_transactions` before the reading or after it, whichever are more: one that was
    prepared in between, and one that ended, may both have rows that were not read."""


def rows_at_once(spark: SparkSession, address: TableAddress) -> TableRows:
    """Read a table. Raises DatabaseUnreadable."""
    before = prepared_transactions(spark, address)
    with _failures_of(address, prepared=before):
        frame = _rows(spark, address).persist()
        count = frame.count()
    after = prepared_transactions(spark, address)
    return TableRows(frame=frame, count=count, prepared=max(before, after))


def prepared_transactions(spark: SparkSession, address: TableAddress) -> int:
    """How many transactions changed tables of the database and were prepared (XA), and are neither
    committed nor rolled back. Readers do not see their changes. Those of other tables count too: a
    view, a partition or a parent does not show what it is made of. Raises DatabaseUnreadable, also
    for a standby, which cannot tell.

    Source: https://www.postgresql.org/docs/current/view-pg-locks.html: a prepared transaction keeps
    its locks, and has no process.
    """
    query = (
        "SELECT pg_catalog.pg_is_in_recovery() AS standby, count(DISTINCT virtualtransaction) AS n "
        "FROM pg_catalog.pg_locks WHERE pid IS NULL AND locktype = 'relation' "
        f"AND mode IN ('RowExclusiveLock', 'AccessExclusiveLock') AND relation >= {FIRST_OWN} "
        "AND database = (SELECT oid FROM pg_catalog.pg_database "
        "WHERE datname = pg_catalog.current_database())"
    )
    with _failures_of(address):
        (found,) = _query(spark, address, query).collect()
    if found.standby:
        raise DatabaseUnreadable(f"{_where(address)} is on a standby; name the primary server")
    return int(found.n)


def is_empty(spark: SparkSession, address: TableAddress) -> bool:
    """Whether a table has no row. Raises DatabaseUnreadable."""
    query = f"SELECT EXISTS (SELECT FROM {address.quoted}) AS filled"
    with _failures_of(address):
        (found,) = _query(spark, address, query).collect()
    return not found.filled


def read_table(
    spark: SparkSession, address: TableAddress, *, into: StoredOutput, source: str
) -> None:
    """Store the rows of a table. `source` is its address in the experiment. Raises
    DatabaseUnreadable."""
    found = rows_at_once(spark, address)
    try:
        store_rows(found.frame, address, into=into, source=source, prepared=found.prepared)
    finally:
        found.frame.unpersist()


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
    # `r.*` is the whole row also where a column is called `r`. Functions of users may have the same
    # names in other schemas.
    row = "pg_catalog.row_to_json(r.*)::pg_catalog.text"
    query = f"SELECT {row} AS value FROM {address.quoted} AS r"
    return _query(spark, address, query)


def _query(spark: SparkSession, address: TableAddress, query: str) -> DataFrame:
    url = f"jdbc:{SCHEME}://{address.server}/{quote(address.database, safe='')}"
    limits = f"connectTimeout={CONNECT_S}&socketTimeout={SILENT_S}"
    options = {
        "url": f"{url}?{limits}&ApplicationName=streamquake",
        "driver": "org.postgresql.Driver",
        "fetchsize": str(ROWS_AT_ONCE),
        "sessionInitStatement": "; ".join(f"SET {k} = '{v}'" for k, v in SETTINGS.items()),
        "query": query,
    }
    if address.user is not None:
        options["user"] = address.user
    if password := os.environ.get(PASSWORD):
        options["password"] = password
    return spark.read.format("jdbc").options(**options).load()


@contextmanager
def _failures_of(address: TableAddress, prepared: int = 0) -> Iterator[None]:
    """Raise failures to read a table as DatabaseUnreadable. `prepared` transactions may be why."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        said = SAID.findall(str(error))
        why = said[-1] if said else message_of(error)
        if LOGIN.search(why):
            why = f"{why}; set {PASSWORD} in the environment to the password of the user"
        if prepared:
            why = f"{why}; {prepared:,} prepared transactions have not ended"
        raise DatabaseUnreadable(f"{_where(address)} cannot be read: {why}") from error


def _where(address: TableAddress) -> str:
    return f"the table {address.name} of {address.database} at {address.server}"
