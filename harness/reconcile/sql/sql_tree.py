"""Spark's trees of SQL, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from streamquake.topologies.errors import ErrorKind, StreamquakeError

CATALYST = "org.apache.spark.sql.catalyst."
MAX_PARTS = 20_000
"""Parts of one tree."""


class UnsafeSql(StreamquakeError):
    """What is wrong with a text."""

    kind = ErrorKind.BAD_INPUT


class SqlNode(NamedTuple):
    """A part of a tree, and its class below `CATALYST`."""

    kind: str
    it: Any

    @property
    def short(self) -> str:
        return self.kind.rpartition(".")[2]


def nodes(spark: SparkSession, tree: Any, *, but: str | None = None) -> Iterator[SqlNode]:
    """Every plan and expression within a tree, wherever it is kept: also those of subqueries and
    common tables, which are no children to Spark. Parts of the kind `but` are left out whole.
    Raises Unsafe for a tree of too many parts."""
    from py4j.java_gateway import JavaObject, is_instance_of

    gateway = spark.sparkContext._gateway
    left, seen = [tree], 0
    while left:
        it = left.pop()
        if not isinstance(it, JavaObject):
            continue
        seen += 1
        if seen > MAX_PARTS:
            raise UnsafeSql(f"expected SQL of at most {MAX_PARTS:,} parts, got more")
        if is_instance_of(gateway, it, CATALYST + "trees.TreeNode"):
            node = SqlNode(it.getClass().getName().removeprefix(CATALYST).rstrip("$"), it)
            if node.short == but:
                continue
            yield node
        elif is_instance_of(gateway, it, "scala.collection.Iterable"):
            left += elements(it.toSeq())
            continue
        if is_instance_of(gateway, it, "scala.Product"):
            left += [it.productElement(change) for change in range(it.productArity())]


def elements(sequence: Any) -> list[Any]:
    """What is in a sequence of Scala."""
    return [sequence.apply(change) for change in range(sequence.size())]
