"""Iterates over the parts of Spark's syntax trees of SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from py4j.java_gateway import JavaObject, is_instance_of
from pyspark.sql import SparkSession

from streamquake.topologies.errors import ErrorKind, StreamquakeError

CATALYST = "org.apache.spark.sql.catalyst."
MAX_PARTS = 20_000
"""Most parts of one tree."""


class UnsafeSql(StreamquakeError):
    """The SQL is not allowed; the message names the problem."""

    kind = ErrorKind.BAD_INPUT


class SqlNode(NamedTuple):
    """A part of a tree, and its class below `CATALYST`."""

    kind: str
    it: Any

    @property
    def short(self) -> str:
        """The name of the class without its package."""
        return self.kind.rpartition(".")[2]


def nodes(spark: SparkSession, tree: Any, *, but: str | None = None) -> Iterator[SqlNode]:
    """All plans and expressions within a tree, also those of subqueries and common table
    expressions, which Spark does not list as children. Parts of the class `but` are skipped with
    all below them. Raises UnsafeSql for a tree of too many parts."""
    gateway = spark.sparkContext._gateway
    pending, visited = [tree], 0
    while pending:
        it = pending.pop()
        if not isinstance(it, JavaObject):
            continue
        visited += 1
        if visited > MAX_PARTS:
            raise UnsafeSql(f"expected SQL of at most {MAX_PARTS:,} parts, got more")
        if is_instance_of(gateway, it, CATALYST + "trees.TreeNode"):
            node = SqlNode(it.getClass().getName().removeprefix(CATALYST).rstrip("$"), it)
            if node.short == but:
                continue
            yield node
        elif is_instance_of(gateway, it, "scala.collection.Iterable"):
            pending += elements(it.toSeq())
            continue
        if is_instance_of(gateway, it, "scala.Product"):
            pending += [it.productElement(index) for index in range(it.productArity())]


def elements(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(index) for index in range(sequence.size())]
