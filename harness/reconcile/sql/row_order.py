"""Rejects SQL whose result depends on the order of the rows.

Rows have no order unless ORDER BY gives one: it differs with the partitions of the data, and so
between evaluations, and an ORDER BY of constants gives none. Other ties cannot be seen in a query:
where two rows are equal in what orders them, `max_by`, `row_number` and a window may choose either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.sql_tree import MisleadingSql, SqlNode, elements, nodes

CHOOSING = frozenset({"first", "first_value", "last", "last_value", "any_value", "nth_value"})
"""Functions that choose a row by the order of the rows."""
NUMBERING = frozenset({"row_number", "lag", "lead", "ntile"})
"""Functions of a window that depend on the order of equal rows."""
CHOOSING_BY_VALUE = frozenset({"min_by", "max_by"})
"""Functions that choose a row by the value of their second argument."""
LISTING = frozenset({"collect_list", "collect_set", "array_agg"})
"""Functions whose list has the order of the rows."""
JOINING = frozenset({"listagg", "string_agg"})
"""Functions whose text has the order of the rows, unless WITHIN GROUP orders it."""
ANY_ORDER = frozenset(
    {"array_sort", "sort_array", "size", "cardinality", "array_size"}
    | {"array_contains", "array_max", "array_min"}
)
"""Functions whose result is the same for each order of the list that they take first."""
PARSED = {"First": "first", "Last": "last", "AnyValue": "any_value"}
"""The functions that Spark's parser resolves itself, by the classes of its tree."""
COUNTING = frozenset({"count", "count_if", "sum", "grouping_id"})
"""Functions that depend on the rows without an argument that names a column."""
ROWS = ("UnresolvedAttribute", "UnresolvedOrdinal", "UnresolvedWindowExpression")
"""Parts of an expression whose value may depend on the row."""
IN_LAMBDA = "UnresolvedNamedLambdaVariable"
"""In a lambda a column, or an argument of the lambda."""
SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery")
"""Parts of an expression that have one value for all rows. A query that refers to a row around it
cannot be told from others, and orders nothing here."""
LIMITS = {"GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Offset": "OFFSET"}
BETWEEN_LIMIT_AND_ORDER = (*LIMITS, "WithWindowDefinition", "PipeOperator")


def reject_order_of_rows(spark: SparkSession, node: SqlNode) -> None:
    """Reject a node whose result depends on the order of the rows. Raises MisleadingSql, with what
    to write instead."""
    if node.class_name in LIMITS and not _is_ordered(spark, node):
        raise MisleadingSql(
            f"{LIMITS[node.class_name]} is not allowed here without ORDER BY in the same query: "
            "its rows differ between evaluations; order by columns that identify a row"
        )
    if node.class_name == "WindowSpecDefinition" and _has_open_frame(spark, node):
        raise MisleadingSql(
            "a window with a frame is not allowed here without ORDER BY: its rows differ between "
            "evaluations; order by columns that identify a row"
        )
    _reject_call(spark, node, _name_of_function(node))


def _reject_call(spark: SparkSession, node: SqlNode, name: str) -> None:
    """Reject a call of a function whose value depends on the order of the rows."""
    if name in CHOOSING and not _is_over_order(spark, node):
        _reject(name, "write `min_by(amount, seq)`, or an ORDER BY in its window")
    if name in NUMBERING and not _is_over_order(spark, node):
        _reject(name, "write an ORDER BY of columns in its window")
    if name in CHOOSING_BY_VALUE and any(
        _is_constant(spark, value) for value in elements(node.tree.arguments())[1:2]
    ):
        _reject(name, f"write `{name}(amount, seq)`, with a column as the second argument")
    if name == "mode" and not _is_least_mode(node):
        _reject(name, "write `mode() WITHIN GROUP (ORDER BY amount)`")
    if name in LISTING and not _is_ordered_list(spark, node):
        _reject(name, f"write `array_sort({name}(...))`")
    if name in JOINING and not _gives_order(spark, node.tree.orderingWithinGroup()):
        _reject(name, f"write `{name}(...) WITHIN GROUP (ORDER BY ...)` with columns")


def _reject(name: str, instead: str) -> None:
    raise MisleadingSql(
        f"the function `{name}` is not allowed here: its value differs between evaluations, with "
        f"the order of the rows; {instead}"
    )


def _name_of_function(node: SqlNode) -> str:
    """The name of a function in small letters; empty for another node."""
    if node.class_name == "UnresolvedFunction":
        return str(elements(node.tree.nameParts())[-1]).lower()
    return PARSED.get(node.class_name, "")


def _is_least_mode(mode: SqlNode) -> bool:
    """Whether the least one is chosen of several values that are the most frequent."""
    deterministic = [str(argument) for argument in elements(mode.tree.arguments())[1:]]
    return bool(elements(mode.tree.orderingWithinGroup())) or deterministic == ["true"]


def _is_ordered_list(spark: SparkSession, listing: SqlNode) -> bool:
    """Whether a list of rows is what a function takes that does not depend on its order."""
    taker = listing.parent
    if taker is None or _name_of_function(taker) not in ANY_ORDER:
        return False
    taken, *others = elements(taker.tree.arguments())
    return bool(taken.equals(listing.tree)) and all(
        _compares(spark, argument)
        for argument in others
        if argument.getClass().getSimpleName() == "LambdaFunction"
    )


def _compares(spark: SparkSession, comparator: Any) -> bool:
    """Whether a comparator uses all its arguments."""
    used = {
        _variable(node.tree)
        for node in nodes(spark, comparator.function())
        if node.class_name == IN_LAMBDA
    }
    return all(_variable(argument) in used for argument in elements(comparator.arguments()))


def _is_ordered(spark: SparkSession, limit: SqlNode) -> bool:
    """Whether ORDER BY of the same query orders the rows below a limit, or none is taken."""
    plan = limit.tree
    while (name := str(plan.getClass().getSimpleName())) in BETWEEN_LIMIT_AND_ORDER:
        if name.endswith("Limit") and str(plan.limitExpr()) == "0":
            return True
        plan = plan.child()
    return name == "Sort" and bool(getattr(plan, "global")()) and _gives_order(spark, plan.order())


def _is_over_order(spark: SparkSession, function: SqlNode) -> bool:
    """Whether a function is evaluated over a window with an ORDER BY."""
    for node in _parents(function):
        if node.class_name == "WindowExpression":
            return _gives_order(spark, node.tree.windowSpec().orderSpec())
        if node.class_name == "UnresolvedWindowExpression":
            return _named_window_orders(spark, node)
        if node.class_name != "AggregateExpression":
            return False
    return False


def _named_window_orders(spark: SparkSession, reference: SqlNode) -> bool:
    """Whether the window that a name refers to has an ORDER BY, as has each other window of this
    name in the queries around."""
    name = reference.tree.windowSpec().name()
    definitions = [
        parent.tree.windowDefinitions().get(name)
        for parent in _parents(reference)
        if parent.class_name == "WithWindowDefinition"
    ]
    found = [definition.get() for definition in definitions if definition.isDefined()]
    return bool(found) and all(_gives_order(spark, window.orderSpec()) for window in found)


def _gives_order(spark: SparkSession, order: Any) -> bool:
    """Whether the parts of an ORDER BY order the rows: one at least is not a constant."""
    return any(not _is_constant(spark, part) for part in elements(order))


def _is_constant(spark: SparkSession, expression: Any) -> bool:
    """Whether an expression has the same value in all rows, as its text shows."""
    return not any(_depends_on_row(spark, node) for node in nodes(spark, expression))


def _depends_on_row(spark: SparkSession, node: SqlNode) -> bool:
    """Whether a part of an expression gives it another value in each row."""
    around = list(_parents(node))
    if any(part.class_name in SUBQUERIES or _is_over_all_rows(spark, part) for part in around):
        return False
    if node.class_name == IN_LAMBDA:
        return not any(_binds(part, node) for part in around)
    return node.class_name in ROWS or _name_of_function(node) in COUNTING


def _is_over_all_rows(spark: SparkSession, node: SqlNode) -> bool:
    """Whether a node is a function over a window that is the same for all rows."""
    if node.class_name != "WindowExpression":
        return False
    window = node.tree.windowSpec()
    parts = [*elements(window.partitionSpec()), *elements(window.orderSpec())]
    return all(_is_constant(spark, part) for part in parts)


def _binds(node: SqlNode, variable: SqlNode) -> bool:
    """Whether a node is the lambda that has this variable as an argument."""
    if node.class_name != "LambdaFunction":
        return False
    name = _variable(variable.tree)
    return any(_variable(argument) == name for argument in elements(node.tree.arguments()))


def _variable(tree: Any) -> str:
    """The name of a variable of a lambda, in small letters."""
    return str(elements(tree.nameParts())[0]).lower()


def _has_open_frame(spark: SparkSession, window: SqlNode) -> bool:
    """Whether a window without ORDER BY takes only some rows of its partition."""
    frame = window.tree.frameSpecification()
    if frame.getClass().getSimpleName() != "SpecifiedWindowFrame":
        return False
    ends = (str(frame.lower()), str(frame.upper()))
    if all(end.lower().startswith("unbounded") for end in ends):
        return False
    return not _gives_order(spark, window.tree.orderSpec())


def _parents(node: SqlNode) -> Iterator[SqlNode]:
    """The nodes around a node, the innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node
