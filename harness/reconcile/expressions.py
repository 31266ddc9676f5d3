"""The expressions of the command line: Spark SQL, parsed by Spark's own parser.

A list is split at its commas by trial: text that ends at a comma within parentheses or quotes does
not parse, so the shortest piece that parses is one expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from streamquake.harness.reconcile.reading.table import Table
from streamquake.harness.reconcile.sql.present_times import present_time_message, present_within
from streamquake.harness.reconcile.sql.safe_sql import safe_expression
from streamquake.harness.reconcile.sql.sql_tree import elements
from streamquake.topologies.problems import BadInput, bad_input, did_you_mean

UNRESOLVED = "UNRESOLVED_COLUMN"
MAX_COMMAS = 500
"""Commas of one list. Each may be within an expression, so the text before it is parsed again."""


@dataclass(frozen=True, kw_only=True)
class Expression:
    """One expression, and the option that it was given by."""

    text: str
    option: str
    path: tuple[str, ...] | None
    """The path of the field, level by level, if the expression only names one; None otherwise."""
    paths: tuple[tuple[str, ...], ...]
    """The paths of all fields that it reads, level by level."""

    @property
    def names(self) -> frozenset[str]:
        """The fields that it reads, by their first level."""
        return frozenset(path[0] for path in self.paths)


def expressions(spark: SparkSession, text: str, option: str) -> tuple[Expression, ...]:
    """The expressions of a comma-separated list.

    Raises BadInput for an expression that does not parse or that does more than compute.
    """
    if text.count(",") > MAX_COMMAS:
        message = f"expected expressions with at most {MAX_COMMAS} commas, got {text.count(','):,}"
        raise bad_input(option, message)
    parsed: list[Expression] = []
    pending: list[str] = []
    for piece in text.split(","):
        pending.append(piece)
        whole = ",".join(pending)
        try:
            tree = safe_expression(spark, whole, option)
        except ParseException as error:
            rejected = error
            continue
        parsed.append(_expression(tree, whole.strip(), option))
        pending = []
    if pending:
        raise bad_input(
            option, f"`{','.join(pending).strip()}` is no expression: {message_line(rejected)}"
        )
    return tuple(parsed)


def only_expression(parsed: Sequence[Expression]) -> Expression:
    """The only expression of a list. Raises BadInput where there are more."""
    if len(parsed) > 1:
        raise bad_input(parsed[0].option, f"expected one expression, got {len(parsed)}")
    return parsed[0]


def _expression(tree: Any, text: str, option: str) -> Expression:
    leaves = elements(tree.collectLeaves())
    attributes = [leaf for leaf in leaves if _kind(leaf) == "UnresolvedAttribute"]
    paths = tuple(tuple(map(str, elements(leaf.nameParts()))) for leaf in attributes)
    direct = paths[0] if _kind(tree) == "UnresolvedAttribute" else None
    return Expression(text=text, option=option, path=direct, paths=paths)


def type_of(expression: Expression, table: Table, side: str) -> DataType:
    """The type of an expression over a table.

    Raises BadInput where it reads an unknown column or one of two meanings, and where it is no
    function of one record.
    """
    if hidden := sorted(expression.names & table.hidden):
        message = f"`{hidden[0]}` is the place of a record, and a field of the {side} side as well"
        raise bad_input(expression.option, f"{message}; rename the field")
    missing = sorted(expression.names - {*table.columns, *table.place})
    if missing:
        raise _unknown_column(expression, missing[0], table, side)
    value = F.expr(expression.text)
    try:
        selected = table.frame.select(value)
        # A condition may hold neither an aggregate, a window nor a generator.
        table.frame.where(F.isnull(value)).schema  # noqa: B018
    except (AnalysisException, Py4JJavaError) as error:
        condition = error.getCondition() if isinstance(error, AnalysisException) else None
        if (condition or "").startswith(UNRESOLVED):
            raise _unknown_column(expression, expression.text, table, side) from error
        raise bad_input(
            expression.option,
            f"`{expression.text}` cannot be used on the {side} side: {message_line(error)}",
        ) from error
    reject_nondeterministic(expression, selected)
    return selected.schema[0].dataType


def reject_nondeterministic(expression: Expression, selected: DataFrame) -> None:
    """Raises BadInput for an expression that is no function of the record alone, such as one that
    uses a random number, a row count, the time or the user. It is the only column of `selected`."""
    # Only the expression is checked: the columns below it number rows, which Spark calls random.
    catalyst_expression = selected._jdf.queryExecution().analyzed().expressions().apply(0)
    patterns: Any = selected.sparkSession._jvm
    current = patterns.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    if not catalyst_expression.deterministic() or catalyst_expression.containsPattern(current):
        message = f"`{expression.text}` has a value that differs between evaluations"
        raise bad_input(expression.option, message)
    plan = selected._jdf.queryExecution().analyzed()
    if (present := present_within(selected.sparkSession, plan, last_step_only=True)) is not None:
        raise bad_input(expression.option, present_time_message(present))


def field_names(texts: Sequence[Expression]) -> frozenset[str]:
    """All fields that these expressions read."""
    return frozenset(name for expression in texts for name in expression.names)


def message_line(error: Exception) -> str:
    """The line of a message of Spark that describes the problem."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "[" in line or "Exception" in line), lines[0])


def _unknown_column(expression: Expression, name: str, table: Table, side: str) -> BadInput:
    known = did_you_mean(name, (*table.columns, *table.place))
    header = " (as the first line of a CSV file names them)" if table.origin == "csv" else ""
    # A note may say why folders give no columns.
    why = "".join(f"; {note}" for note in table.notes)
    return bad_input(
        expression.option, f"`{name}` is not a column of the {side} side{known}{header}{why}"
    )


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
