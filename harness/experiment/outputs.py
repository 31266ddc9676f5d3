"""Outputs: where a job writes, and what it should have written.

A job's SQL file says so in a comment block of YAML at its top:

    -- streamquake:
    --   outputs:
    --     totals:
    --       kafka: totals              # a topic ...
    --       identity: [key, seq]       # the columns that name a record
    --       compare: [total]           # the columns whose values must agree
    --       order: seq                 # within `key`, records come in this order
    --       map: {key: user.id, total: CAST(cents AS BIGINT)}  # where a record says otherwise
    --       format: avro               # of a topic, unless JSON, ...
    --       schema: totals.avsc        # ... and more: reconcile/reading/record_format.py
    --       retracts: op = 'd'         # which records of a changelog take others back
    --       upsert: true               # or: the last record of an identity counts, one without
    --                                  # a value deletes it (`identity` by `map` over `_key`)
    --       also: [gap, wrong_partition]   # what else must not be (harness/reconcile/anomalies)
    --     totals-files:
    --       hdfs: /output/totals       # ... or a folder
    --       ...
    --   expected: >                    # Spark SQL over the view `sent`
    --     SELECT key, seq, SUM(amount) OVER (PARTITION BY key ORDER BY seq) AS total FROM sent

`sent` has one row per record that the job may have been given, with the columns of the workload
(`workloads/numbered/frame.py`) and `status`: acknowledged, or unknown where it could not be
determined; sends that were refused are no rows. An expectation that hands `status` through says
that each of its rows stands for one send; one that does not (totals, windows) can be judged only
when every send is settled. An output without an expectation cannot be judged, and `exactly_once`
says so: undecided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from streamquake.harness.reconcile.anomaly import unknown_class
from streamquake.harness.reconcile.reading.format import formats, not_in_topics
from streamquake.harness.reconcile.reading.record_format import RecordFormat
from streamquake.topologies.model import LONGEST_NAME, Model, Name, Topic
from streamquake.topologies.problems import did_you_mean

INPUT_FOLDER = "input.topic"
"""The folder in a run's `data` that holds the input topic, where it had to be read."""


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
ColumnName = Annotated[str, Field(pattern=r"^[^`\x00-\x1f\x7f]+$", max_length=LONGEST_NAME)]
"""A column, as a field of a record may be called."""


class Output(RecordFormat):
    """One place a job writes to, how, and what identifies and describes a record there."""

    kafka: Topic | None = None
    """The topic, of an output that is one."""
    hdfs: Folder | None = None
    """The folder on HDFS, of an output that is one."""
    identity: tuple[ColumnName, ...] = ("key", "seq")
    """The columns that name a record."""
    compare: tuple[ColumnName, ...] = ()
    """The columns whose values must agree."""
    order: ColumnName | None = None
    """The column in whose order records must come; without it order is not judged."""
    order_by: tuple[ColumnName, ...] = ("key",)
    """The columns within whose values that order holds."""
    map: Mapping[ColumnName, str] = {}
    """Column -> Spark SQL over the fields of a record and its place (`_key`, `_partition`, ...),
    where it is not the field of the column's name."""
    retracts: str | None = None
    """Spark SQL as in `map`: whether a record takes another one back, as changelogs have them."""
    upsert: bool = False
    """Whether the last record of an identity replaces those before it in its partition, and one
    without a value deletes them. The identity of these stands in the record's key: `map` says it
    over `_key`."""
    also: tuple[str, ...] = ()
    """Classes of anomaly that its records must not have either, beyond those of exactly-once."""
    expected: str | None = None
    """Spark SQL over `sent`, where this output differs from the job's own `expected`."""

    @model_validator(mode="after")
    def _one_place(self) -> Output:
        if (self.kafka is None) == (self.hdfs is None):
            raise ValueError("an output is either `kafka: TOPIC` or `hdfs: FOLDER`")
        return self

    @model_validator(mode="after")
    def _can_be_read_so(self) -> Output:
        kind = formats.get(self.format) if self.format is not None else None
        if kind is None:
            return self
        if self.hdfs is not None and not (kind.takes_schema and kind.extensions):
            raise ValueError(
                "files are of JSON lines, Parquet or Avro, which is found by what they begin with; "
                "leave `format` out"
            )
        if self.kafka is not None and (why := not_in_topics(kind)):
            raise ValueError(why)
        if self.kafka is not None and kind.takes_schema and self.schema_ is None:
            raise ValueError(
                f"values in {kind.name} do not hold their schema; say it, as `schema: FILE`"
            )
        return self

    @model_validator(mode="after")
    def _replaces_what_can_be_replaced(self) -> Output:
        if not self.upsert:
            return self
        if self.kafka is None:
            raise ValueError("`upsert` is for topics: files have no key, and no last record")
        if self.retracts is not None or self.order is not None:
            other = "retracts" if self.retracts is not None else "order"
            raise ValueError(
                f"`upsert` leaves one record of an identity, so `{other}` says nothing"
            )
        if unkeyed := [name for name in self.identity if "_key" not in self.map.get(name, "")]:
            raise ValueError(
                f"with `upsert` a record without a value must say which it deletes: `map` needs "
                f"`{unkeyed[0]}` over the record's key, such as get_json_object(_key, "
                f"'$.{unkeyed[0]}')"
            )
        return self

    @model_validator(mode="after")
    def _asks_for_known_classes(self) -> Output:
        if wrong := unknown_class(self.also):
            raise ValueError(f"`also`: {wrong}")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """What must be read of each record."""
        ordered = (self.order, *self.order_by) if self.order else ()
        return tuple(dict.fromkeys((*self.identity, *self.compare, *ordered)))

    @model_validator(mode="after")
    def _maps_what_is_read(self) -> Output:
        if unread := [name for name in self.map if name not in self.columns]:
            known = did_you_mean(unread[0], self.columns)
            raise ValueError(
                f"`map` says what `{unread[0]}` is, and it is neither in identity nor compare nor "
                f"order{known}"
            )
        return self


class JobPromise(Model):
    """What a job promises: its outputs and the records that shall stand there."""

    outputs: Mapping[Name, Output] = {}
    """Name -> output; `${output.NAME}` in the program."""
    expected: str | None = None
    """The records that shall stand there: Spark SQL over `sent`."""
    partitions: int = 4
    """Partitions of each topic the job writes to."""
    lateness_ms: int | None = None
    """Records whose event time lies this far, or farther, behind an earlier record of their
    partition may be left out; None where event time decides nothing."""

    @model_validator(mode="after")
    def _keeps_clear_of_the_input(self) -> JobPromise:
        folded = [name.casefold() for name in self.outputs]
        if twice := next((name for name in folded if folded.count(name) > 1), None):
            raise ValueError(
                f'two outputs are called "{twice}" but for capital letters, which not every disk '
                "tells apart; give one another name"
            )
        if INPUT_FOLDER in folded:
            raise ValueError(
                f"`{INPUT_FOLDER}` is where a run keeps what it read of its input; give the output "
                "another name"
            )
        return self

    @property
    def only_files(self) -> bool:
        """Whether there are outputs, and none is a topic."""
        return bool(self.outputs) and all(o.kafka is None for o in self.outputs.values())

    @property
    def explodes(self) -> bool:
        """Whether rows are expected for each of a record's `copies`."""
        queries = (self.expected, *(output.expected for output in self.outputs.values()))
        return any(re.search(r"\bcopies\b", query) for query in queries if query is not None)
