"""Finds constants of SQL that depend on the present time.

Where text becomes a time, Spark reads '12:30' as this time of today, and 'today' as the present
day. The value of a constant expression is known after Spark has analysed the SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.constant_texts import TEXT, texts_of, texts_of_rows
from streamquake.harness.reconcile.sql.sql_tree import SqlNode, nodes

WORD = re.compile(
    r"(?:now|today|tomorrow|yesterday)(?:\s+[a-z]+(?:/[a-z0-9_+-]+)*|\s*[+-][\d:]+)?",
    re.IGNORECASE,
)
"""Text that Spark reads as the present where it expects a date or a time, with a zone."""
CLOCK = re.compile(r"T?\d+:\d+(?::\d+(?:\.\d*)?)?\s*(?:[a-z+-][\w/:+-]*)?", re.IGNORECASE)
"""Text that Spark reads as a time of today where it expects a timestamp, with a zone."""
BLANK = "".join(map(chr, range(0x21))) + "\x7f"
"""Characters that Spark strips from both ends of a text before it parses a time."""
TIME = re.compile("date|timestamp")
SUBQUERIES = ("Exists", "ScalarSubquery", "ListQuery", "LateralSubquery")
READERS = ("JsonToStructs", "CsvToStructs", "XmlToStructs", "VariantGet")


def present_time_message(text: str) -> str:
    """The message for text that depends on the present time."""
    return f"'{text}' depends on the time at which it is read; write a full date"


def is_word_of_present(text: str) -> bool:
    """Whether a text is a word for the present, such as 'now'."""
    return WORD.fullmatch(text.strip(BLANK)) is not None


def _is_present(text: str) -> bool:
    return is_word_of_present(text) or CLOCK.fullmatch(text.strip(BLANK)) is not None


def present_within(spark: SparkSession, plan: Any, *, last_step_only: bool = False) -> str | None:
    """A constant of an analysed plan that depends on the present time, None where there is none.
    Views in the plan are skipped. With `last_step_only` only the expressions of its last step are
    searched."""
    computing_nodes = list(_computing_nodes(spark, plan, last_step_only=last_step_only))
    readers = [node for node in computing_nodes if _reads_time(node)]
    written = (node.tree.child() for node in readers if _reads_nested_text(node))
    if (value := next((str(text.sql()) for text in written if text.foldable()), None)) is not None:
        return value
    return next(filter(_is_present, _constants(spark, computing_nodes)), None) if readers else None


def _computing_nodes(
    spark: SparkSession, plan: Any, *, last_step_only: bool = False
) -> Iterator[SqlNode]:
    """The nodes of a plan, with each function replaced by the expressions that compute it."""
    catalyst: Any = spark._jvm
    replace = getattr(catalyst.org.apache.spark.sql.catalyst.optimizer, "ReplaceExpressions$")
    replaced = getattr(replace, "MODULE$").apply(plan)
    for node in nodes(
        spark, replaced.expressions() if last_step_only else replaced, skipped_class="View"
    ):
        yield node
        if node.class_name in SUBQUERIES:
            yield from _computing_nodes(spark, node.tree.plan())


def _reads_time(node: SqlNode) -> bool:
    """Whether the node converts text to a date or a time."""
    if node.class_name not in ("Cast", *READERS):
        return False
    target, source = (
        str(part.dataType().catalogString()) for part in (node.tree, node.tree.child())
    )
    return bool(TIME.search(target) and TEXT.search(source))


def _reads_nested_text(node: SqlNode) -> bool:
    """Whether the node reads texts within another text, such as JSON."""
    return node.class_name in READERS or "variant" in str(
        node.tree.child().dataType().catalogString()
    )


def _constants(spark: SparkSession, computing_nodes: Iterable[SqlNode]) -> Iterator[str]:
    """The constant texts of these nodes."""
    for node in computing_nodes:
        if node.class_name == "LocalRelation":
            yield from texts_of_rows(spark, node.tree)
        elif node.qualified_name.startswith("expressions.") and node.tree.foldable():
            yield from texts_of(spark, node.tree)
