"""Outputs: where a job writes, and what it should have written.

A job's SQL file declares them in a comment block of YAML at its top:

    -- streamquake:
    --   outputs:
    --     totals:
    --       kafka: totals              # a topic ...
    --       identity: [key, seq]       # the columns that name a record
    --       compare: [total]           # the columns whose values must agree
    --       order: seq                 # within `key`, records are in this order
    --       map: {key: user.id, total: CAST(cents AS BIGINT)}  # for fields of other names
    --       format: avro               # of a topic, unless JSON, ...
    --       schema: totals.avsc        # ... and more: reconcile/reading/record_format.py
    --       retracts: op = 'd'         # which records of a changelog retract others
    --       upsert: true               # or: the last record of an identity counts, one without
    --                                  # a value deletes it (`identity` by `map` over `_key`)
    --       also: [gap, wrong_partition]   # more anomaly classes (harness/reconcile/anomalies)
    --     totals-files:
    --       hdfs: /output/totals       # ... or a folder ...
    --       ...
    --     totals-objects:
    --       s3: s3://results/totals    # ... or a folder of an object store ...
    --       endpoint: http://${store.api}
    --       ...
    --     totals-table:
    --       table: postgresql://app@${db.sql}/shop/totals    # ... or a table
    --       ...
    --   expected: >                    # Spark SQL over the view `sent`
    --     SELECT key, seq, SUM(amount) OVER (PARTITION BY key ORDER BY seq) AS total FROM sent

`sent` has one row per record that may be in the input, with the columns of the workload
(`workloads/numbered/frame.py`) and `status`: acknowledged, or unknown where it could not be
determined. Rejected sends have no rows. If an expectation selects `status`, and the output has no
column of this name, each of its rows represents one send. Otherwise (totals, windows) it can be
judged only when every send is settled. An output without an expectation cannot be judged:
`exactly_once` is undecided.

The rows of `sent` have no order, so what depends on one is rejected: `first`, `last`, `any_value`
and `nth_value` without ORDER BY in their window (`min_by(amount, seq)` and `max_by` name an order);
`collect_list`, `collect_set` and `array_agg` without `array_sort` around them, `listagg` without
WITHIN GROUP; the frame of a window, LIMIT and OFFSET without ORDER BY. A constant orders nothing:
it is no ORDER BY, and no second argument of `min_by`. No query shows ties between other values:
where two rows are equal in what orders them, `max_by`, `ROW_NUMBER` or a window may choose another
one at each evaluation. Order by columns that identify a row, and add decimals, not DOUBLE.

`NOT IN (SELECT …)` is rejected: it is true for no row once the inner query returns a null. Write
`NOT EXISTS (SELECT …)` or `LEFT ANTI JOIN`. For the same reason `x IN (SELECT …)` is only allowed
as a condition of WHERE, HAVING, ON or FILTER, alone or with AND and OR. As a value (a column,
`= false`, CASE) write `coalesce(x IN (SELECT …), false)`. Both hold for a list with the value of a
query, `x NOT IN ((SELECT max(y) …), 0)`; in the list, `coalesce((SELECT max(y) …), 0)` is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import permutations
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from streamquake.harness.reconcile.anomaly import unknown_class
from streamquake.harness.reconcile.reading.database_address import TableAddress, table_address
from streamquake.harness.reconcile.reading.format import formats, not_in_topics
from streamquake.harness.reconcile.reading.object_folder import (
    ObjectFolder,
    object_folder,
    store_url,
)
from streamquake.harness.reconcile.reading.record_format import RecordFormat
from streamquake.topologies.model import LONGEST_NAME, Model, Name, Topic
from streamquake.topologies.problems import did_you_mean

OF_ORDER = ("regression", "unmatched_retraction", "wrong_partition")
"""Classes that need partitions, or an order of the records."""
INPUT_FOLDER = "input.topic"
"""The folder in a run's `data` that holds the records of the input topic, if they were read."""


def _below_the_root(folder: str) -> str:
    parts = [part for part in folder.split("/") if part]
    if not parts or {".", ".."} & set(parts):
        raise ValueError(
            f'expected a folder below the root, such as /output/totals, got "{folder}"'
        )
    return folder


Folder = Annotated[
    str, Field(pattern=r"^/[A-Za-z0-9._=/-]*$", max_length=1024), AfterValidator(_below_the_root)
]


def _below_a_bucket(uri: str) -> str:
    if {"", ".", ".."} & set(object_folder(uri).path.split("/")):
        raise ValueError(f'expected a folder of a bucket, such as s3://results/totals, got "{uri}"')
    return uri


ObjectsUri = Annotated[
    str,
    Field(pattern=r"^s3://[A-Za-z0-9._=/-]*$", max_length=1024),
    AfterValidator(_below_a_bucket),
]
StoreUrl = Annotated[str, AfterValidator(store_url)]
ColumnName = Annotated[str, Field(pattern=r"^[^`\x00-\x1f\x7f]+$", max_length=LONGEST_NAME)]
"""A column: any name that a field of a record may have."""
SomeColumns = Annotated[tuple[ColumnName, ...], Field(min_length=1)]
"""At least one column."""


class Output(RecordFormat):
    """One destination of a job, its format, and the columns that identify and describe a record."""

    kafka: Topic | None = None
    """The topic, if the output is a topic."""
    hdfs: Folder | None = None
    """The folder on HDFS, if the output is a folder."""
    s3: ObjectsUri | None = None
    """The objects, if the output is a folder of an object store with S3's interface:
    `s3://BUCKET/FOLDER`. The keys are taken from the environment variables AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY; without them requests are not signed."""
    endpoint: StoreUrl | None = None
    """Of `s3`: the URL of the store. For one of the topology, `http://${SERVICE.PORT}`; without it
    the store is that of the environment variable AWS_ENDPOINT_URL, or else AWS."""
    table: str | None = None
    """The table, if the output is a table of PostgreSQL:
    `postgresql://[user@]host[:port]/database/[schema.]table`. For a database of the topology,
    `${SERVICE.PORT}` stands for host and port. The user's password is taken from the environment
    variable PGPASSWORD."""
    identity: SomeColumns = ("key", "seq")
    """The columns that name a record."""
    compare: tuple[ColumnName, ...] = ()
    """The columns whose values must agree."""
    order: ColumnName | None = None
    """The column that orders the records; without it order is not judged."""
    order_by: SomeColumns = ("key",)
    """The columns that group the records: `order` holds within equal values of them."""
    map: Mapping[ColumnName, str] = {}
    """Column -> Spark SQL over the fields of a record and its place (`_key`, `_partition`, ...),
    for columns whose value is not the field of the same name."""
    retracts: str | None = None
    """Spark SQL as in `map`: whether a record of a changelog retracts another one."""
    upsert: bool = False
    """Whether the last record of an identity replaces those before it in its partition, and one
    without a value deletes them. Such a record has its identity in its key: `map` reads it from
    `_key`."""
    also: tuple[str, ...] = ()
    """Anomaly classes that are judged beyond those of exactly-once."""
    expected: str | None = None
    """Spark SQL over `sent`, where this output differs from the job's own `expected`."""

    @model_validator(mode="after")
    def _one_place(self) -> Output:
        if [self.kafka, self.hdfs, self.s3, self.table].count(None) != 3:
            raise ValueError(
                "an output is one of `kafka: TOPIC`, `hdfs: FOLDER`, `s3: URI` or `table: ADDRESS`"
            )
        if self.endpoint is not None and self.s3 is None:
            raise ValueError(f"`endpoint` is the store of `s3`; remove it from `{self.kind}`")
        return self

    @model_validator(mode="after")
    def _is_a_table(self) -> Output:
        if self.address is None:
            return self
        given = {"format": self.format, "schema": self.schema_, "header": self.header}
        given |= {"message": self.message, "order": self.order, "retracts": self.retracts}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise ValueError(f"a table has columns, and rows without an order; remove `{wrong[0]}`")
        if wrong := [name for name in self.also if name in OF_ORDER]:
            raise ValueError(f"`also`: rows of a table have no place that {wrong[0]} needs")
        if self.upsert:
            raise ValueError(
                "`upsert` is for topics: a table has the last row of a key by itself; remove it"
            )
        return self

    @model_validator(mode="after")
    def _has_a_readable_format(self) -> Output:
        kind = formats.get(self.format) if self.format is not None else None
        if kind is None:
            return self
        if self.in_files and not (kind.takes_schema and kind.extensions):
            raise ValueError(
                "files are JSON lines, Parquet or Avro, which their first bytes determine; "
                "leave `format` out"
            )
        if self.kafka is not None and (why := not_in_topics(kind)):
            raise ValueError(why)
        if self.kafka is not None and kind.takes_schema and self.schema_ is None:
            raise ValueError(
                f"values in {kind.name} do not hold their schema; give it as `schema: FILE`"
            )
        return self

    @model_validator(mode="after")
    def _can_be_upserted(self) -> Output:
        if not self.upsert:
            return self
        if self.kafka is None:
            raise ValueError("`upsert` is for topics: files have no key, and no last record")
        if self.retracts is not None or self.order is not None:
            other = "retracts" if self.retracts is not None else "order"
            raise ValueError(
                f"`upsert` leaves one record of an identity, so `{other}` has no meaning"
            )
        if unkeyed := [name for name in self.identity if "_key" not in self.map.get(name, "")]:
            raise ValueError(
                f"with `upsert` a record without a value must identify what it deletes: `map` "
                f"needs `{unkeyed[0]}` over the record's key, such as get_json_object(_key, "
                f"'$.{unkeyed[0]}')"
            )
        return self

    @model_validator(mode="after")
    def _names_known_classes(self) -> Output:
        if wrong := unknown_class(self.also):
            raise ValueError(f"`also`: {wrong}")
        return self

    @property
    def place(self) -> str:
        """The topic, the folder or the address of the table."""
        return str(self.kafka or self.hdfs or self.s3 or self.table)

    @property
    def in_files(self) -> bool:
        """Whether the output is a folder."""
        return self.hdfs is not None or self.s3 is not None

    @property
    def objects(self) -> ObjectFolder | None:
        """The folder of an object store, if the output is one."""
        return None if self.s3 is None else object_folder(self.s3, self.endpoint)

    @property
    def address(self) -> TableAddress | None:
        """The address of the table, if the output is a table. Raises ValueError for a wrong one."""
        return None if self.table is None else table_address(self.table, services=True)

    @property
    def folder(self) -> tuple[str, str] | None:
        """The store and the path of the folder, without an end `/`; None for other outputs."""
        if self.hdfs is not None:
            return "", self.hdfs.rstrip("/")
        if self.objects is not None:
            return self.objects.endpoint or "AWS", self.objects.key
        return None

    def is_in_folder_of(self, other: Output) -> bool:
        """Whether both are folders of one store, and this one is the other's or below it."""
        if self.folder is None or other.folder is None or self.folder[0] != other.folder[0]:
            return False
        return f"{self.folder[1]}/".startswith(f"{other.folder[1]}/")

    @property
    def kind(self) -> str:
        """The key of its place: kafka, hdfs, s3 or table."""
        return next(k for k in ("kafka", "hdfs", "s3", "table") if getattr(self, k) is not None)

    @property
    def replaces(self) -> bool:
        """Whether a later record may correct an earlier one, so that a wrong one is final only when
        everything is committed."""
        return self.retracts is not None or self.upsert or self.table is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read of each record."""
        ordered = (self.order, *self.order_by) if self.order else ()
        return tuple(dict.fromkeys((*self.identity, *self.compare, *ordered)))

    @model_validator(mode="after")
    def _maps_only_its_columns(self) -> Output:
        if unread := [name for name in self.map if name not in self.columns]:
            known = did_you_mean(unread[0], self.columns)
            raise ValueError(
                f"`map` has the column `{unread[0]}`, which is neither in identity nor compare nor "
                f"order{known}"
            )
        return self


class JobPromise(Model):
    """What a job promises: its outputs and the records that they must hold."""

    outputs: Mapping[Name, Output] = {}
    """Name -> output; `${output.NAME}` in the program."""
    expected: str | None = None
    """The records that the outputs must hold: Spark SQL over `sent`."""
    partitions: int = 4
    """Partitions of each topic the job writes to."""
    lateness_ms: int | None = None
    """Records whose event time is at least this far behind an earlier record of their partition
    may be dropped as late; None if the job does not use event time."""

    @model_validator(mode="after")
    def _has_distinct_folders(self) -> JobPromise:
        folded = [name.casefold() for name in self.outputs]
        if twice := next((name for name in folded if folded.count(name) > 1), None):
            raise ValueError(
                f'two outputs are called "{twice}" and differ only in capital letters, which not '
                "every file system distinguishes; rename one of them"
            )
        tables = [output.table for output in self.outputs.values() if output.table is not None]
        if len({*tables}) < len(tables):
            raise ValueError("two outputs are the same table; the rows of one would be too many")
        in_stores = [
            (output, objects.uri)
            for output in self.outputs.values()
            if (objects := output.objects) is not None
        ]
        for (one, uri), (other, above) in permutations(in_stores, 2):
            if one.is_in_folder_of(other):
                raise ValueError(
                    f"{uri} is in {above}, and both are outputs; the records of one would be too "
                    "many"
                )
        if INPUT_FOLDER in folded:
            raise ValueError(
                f"`{INPUT_FOLDER}` is the folder for the records of a run's input; give the output "
                "another name"
            )
        return self

    @property
    def only_files(self) -> bool:
        """Whether no output is a topic, and there is at least one."""
        return bool(self.outputs) and all(o.kafka is None for o in self.outputs.values())

    @property
    def writes_files(self) -> bool:
        """Whether an output is a folder."""
        return any(output.in_files for output in self.outputs.values())

    @property
    def explodes(self) -> bool:
        """Whether the expected rows have one row per entry of a record's `copies`."""
        queries = (self.expected, *(output.expected for output in self.outputs.values()))
        return any(re.search(r"\bcopies\b", query) for query in queries if query is not None)
