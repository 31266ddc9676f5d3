"""Finds constants of SQL that depend on the present time.

Where text becomes a time, Spark reads '12:30' as this time of today, and 'today' as the present
day. The value of a constant expression is known after Spark has analysed the SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.sql_tree import SqlNode, elements, nodes

WORD = re.compile(
    r"(?:now|today|tomorrow|yesterday)(?:\s+[a-z]+(?:/[a-z0-9_+-]+)*|\s*[+-][\d:]+)?",
    re.IGNORECASE,
)
"""Text that Spark reads as the present where it expects a date or a time, with a zone."""
CLOCK = re.compile(r"T?\d+:\d+(?::\d+(?:\.\d*)?)?\s*(?:[a-z+-][\w/:+-]*)?", re.IGNORECASE)
"""Text that Spark reads as a time of today where it expects a timestamp, with a zone."""
BLANK = "".join(map(chr, range(0x21))) + "\x7f"
"""Characters that Spark strips from both ends of a text before it parses a time."""
TIME, TEXT = re.compile("date|timestamp"), re.compile("string|variant")
SUBQUERIES = ("Exists", "ScalarSubquery", "ListQuery", "LateralSubquery")
READERS = ("JsonToStructs", "CsvToStructs", "XmlToStructs", "VariantGet")


def present_time_message(text: str) -> str:
    """The message for text that depends on the present time."""
    return f"'{text}' may be another time whenever it is read; write a date in full"


def is_word_of_present(text: str) -> bool:
    """Whether a text is a word for the present, such as 'now'."""
    return WORD.fullmatch(text.strip(BLANK)) is not None


def _is_present(text: str) -> bool:
    return is_word_of_present(text) or CLOCK.fullmatch(text.strip(BLANK)) is not None


def present_within(spark: SparkSession, plan: Any, *, top: bool = False) -> str | None:
    """A constant of an analysed plan that depends on the present time, None where there is none.
    Views in the plan are skipped. With `top` only the expressions of its last step are searched."""
    found = list(_computing_nodes(spark, plan, top=top))
    readers = [node for node in found if _reads_time(node)]
    written = (node.it.child() for node in readers if _reads_nested_text(node))
    if (value := next((str(each.sql()) for each in written if each.foldable()), None)) is not None:
        return value
    return next(filter(_is_present, _constants(found)), None) if readers else None


def _computing_nodes(spark: SparkSession, plan: Any, *, top: bool = False) -> Iterator[SqlNode]:
    """The parts of a plan, with each function replaced by the expressions that compute it."""
    catalyst: Any = spark._jvm
    replace = getattr(catalyst.org.apache.spark.sql.catalyst.optimizer, "ReplaceExpressions$")
    replaced = getattr(replace, "MODULE$").apply(plan)
    for node in nodes(spark, replaced.expressions() if top else replaced, but="View"):
        yield node
        if node.short in SUBQUERIES:
            yield from _computing_nodes(spark, node.it.plan())


def _reads_time(node: SqlNode) -> bool:
    """Whether the part converts text to a date or a time."""
    if node.short not in ("Cast", *READERS):
        return False
    target, source = (str(it.dataType().catalogString()) for it in (node.it, node.it.child()))
    return bool(TIME.search(target) and TEXT.search(source))


def _reads_nested_text(node: SqlNode) -> bool:
    """Whether the part reads texts within another text, such as JSON."""
    return node.short in READERS or "variant" in str(node.it.child().dataType().catalogString())


def _constants(found: Iterable[SqlNode]) -> Iterator[str]:
    """The constant texts of these parts."""
    for node in found:
        if node.short == "LocalRelation":
            yield from _texts_of_rows(node.it)
        elif node.kind.startswith("expressions.") and _is_text(node.it) and node.it.foldable():
            try:
                yield str(node.it.eval(None))
            except Py4JJavaError:  # it fails for every record too
                continue


def _texts_of_rows(relation: Any) -> Iterator[str]:
    columns = [at for at, each in enumerate(elements(relation.output())) if _is_text(each)]
    for row in elements(relation.data()):
        yield from (str(row.getUTF8String(at)) for at in columns)


def _is_text(expression: Any) -> bool:
    return bool(expression.dataType().catalogString().startswith("string"))
