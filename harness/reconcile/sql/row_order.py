"""Rejects SQL whose result depends on the order of the rows.

Rows have no order unless ORDER BY gives one: it differs with the partitions of the data, and so
between evaluations. Ties cannot be seen in a query: where two rows are equal in what orders them,
`max_by`, `row_number` and a window may choose either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamquake.harness.reconcile.sql.sql_tree import SqlNode, UnsafeSql, elements

CHOOSING = frozenset({"first", "first_value", "last", "last_value", "any_value", "nth_value"})
"""Functions that choose a row by the order of the rows."""
LISTING = frozenset({"collect_list", "collect_set", "array_agg"})
"""Functions whose list has the order of the rows."""
JOINING = frozenset({"listagg", "string_agg"})
"""Functions whose text has the order of the rows, unless WITHIN GROUP orders it."""
ANY_ORDER = frozenset(
    {"array_sort", "sort_array", "size", "cardinality", "array_size"}
    | {"array_contains", "array_max", "array_min"}
)
"""Functions whose result is the same for each order of the list that they take."""
PARSED = {"First": "first", "Last": "last", "AnyValue": "any_value"}
"""The functions that Spark's parser resolves itself, by the classes of its tree."""
LIMITS = {"GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Offset": "OFFSET"}
BETWEEN_LIMIT_AND_ORDER = (*LIMITS, "WithWindowDefinition", "PipeOperator")


def reject_order_of_rows(node: SqlNode) -> None:
    """Reject a node whose result depends on the order of the rows. Raises UnsafeSql, with what to
    write instead."""
    if node.class_name in LIMITS and not _is_ordered(node):
        raise UnsafeSql(
            f"{LIMITS[node.class_name]} is not allowed here without ORDER BY in the same query: "
            "its rows differ between evaluations; order by columns that identify a row"
        )
    if node.class_name == "WindowSpecDefinition" and _has_open_frame(node):
        raise UnsafeSql(
            "a window with a frame is not allowed here without ORDER BY: its rows differ between "
            "evaluations; order by columns that identify a row"
        )
    name = _name_of_function(node)
    if name in CHOOSING and not _is_over_order(node):
        _reject(name, "write `min_by(amount, seq)`, or an ORDER BY in its window")
    if name in LISTING and not _is_argument_of(node, ANY_ORDER):
        _reject(name, f"write `array_sort({name}(...))`")
    if name in JOINING and not elements(node.tree.orderingWithinGroup()):
        _reject(name, f"write `{name}(...) WITHIN GROUP (ORDER BY ...)`")


def _reject(name: str, instead: str) -> None:
    raise UnsafeSql(
        f"the function `{name}` is not allowed here: its value differs between evaluations, with "
        f"the order of the rows; {instead}"
    )


def _name_of_function(node: SqlNode) -> str:
    """The name of a function in small letters; empty for another node."""
    if node.class_name == "UnresolvedFunction":
        return str(elements(node.tree.nameParts())[-1]).lower()
    return PARSED.get(node.class_name, "")


def _is_argument_of(node: SqlNode, names: frozenset[str]) -> bool:
    return node.parent is not None and _name_of_function(node.parent) in names


def _is_ordered(limit: SqlNode) -> bool:
    """Whether ORDER BY of the same query orders the rows below a limit, or none is taken."""
    plan = limit.tree
    while (name := str(plan.getClass().getSimpleName())) in BETWEEN_LIMIT_AND_ORDER:
        if name.endswith("Limit") and str(plan.limitExpr()) == "0":
            return True
        plan = plan.child()
    return name == "Sort" and bool(getattr(plan, "global")())


def _is_over_order(function: SqlNode) -> bool:
    """Whether a function is evaluated over a window with an ORDER BY."""
    for node in _parents(function):
        if node.class_name == "WindowExpression":
            return _orders(node.tree.windowSpec())
        if node.class_name == "UnresolvedWindowExpression":
            return _named_window_orders(node)
        if node.class_name != "AggregateExpression":
            return False
    return False


def _named_window_orders(reference: SqlNode) -> bool:
    """Whether the window that a name refers to has an ORDER BY, as has each other window of this
    name in the queries around."""
    name = reference.tree.windowSpec().name()
    definitions = [
        parent.tree.windowDefinitions().get(name)
        for parent in _parents(reference)
        if parent.class_name == "WithWindowDefinition"
    ]
    found = [definition.get() for definition in definitions if definition.isDefined()]
    return bool(found) and all(map(_orders, found))


def _orders(window: Any) -> bool:
    return bool(elements(window.orderSpec()))


def _has_open_frame(window: SqlNode) -> bool:
    """Whether a window without ORDER BY takes only some rows of its partition."""
    frame = window.tree.frameSpecification()
    if _orders(window.tree) or frame.getClass().getSimpleName() != "SpecifiedWindowFrame":
        return False
    ends = (str(frame.lower()), str(frame.upper()))
    return not all(end.lower().startswith("unbounded") for end in ends)


def _parents(node: SqlNode) -> Iterator[SqlNode]:
    """The nodes around a node, the innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node
