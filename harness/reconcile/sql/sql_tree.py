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


class MisleadingSql(UnsafeSql):
    """The SQL only computes values, but other ones than its reader expects."""


class SqlNode(NamedTuple):
    """A node of a tree: its class below `CATALYST`, the tree of which it is the root, and the node
    that it is a part of."""

    qualified_name: str
    tree: Any
    parent: SqlNode | None = None

    @property
    def class_name(self) -> str:
        """The name of the class without its package."""
        return self.qualified_name.rpartition(".")[2]


def nodes(spark: SparkSession, tree: Any, *, skipped_class: str | None = None) -> Iterator[SqlNode]:
    """All plans and expressions within a tree, also those of subqueries and common table
    expressions, which Spark does not list as children. Nodes of `skipped_class` are skipped with
    all nodes below them. Raises UnsafeSql for a tree of too many parts."""
    gateway = spark.sparkContext._gateway
    pending: list[tuple[Any, SqlNode | None]] = [(tree, None)]
    visited = 0
    while pending:
        part, parent = pending.pop()
        if not isinstance(part, JavaObject):
            continue
        visited += 1
        if visited > MAX_PARTS:
            raise UnsafeSql(f"expected SQL of at most {MAX_PARTS:,} parts, got more")
        if is_instance_of(gateway, part, CATALYST + "trees.TreeNode"):
            name = part.getClass().getName().removeprefix(CATALYST).rstrip("$")
            node = SqlNode(name, part, parent)
            if node.class_name == skipped_class:
                continue
            yield node
            parent = node
        elif is_instance_of(gateway, part, "scala.collection.Iterable"):
            pending += [(element, parent) for element in elements(part.toSeq())]
            continue
        if is_instance_of(gateway, part, "scala.Product"):
            pending += [(part.productElement(at), parent) for at in range(part.productArity())]


def elements(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(index) for index in range(sequence.size())]
