"""Rejects `NOT IN (SELECT …)`, which no row fulfils once a row of the inner query is null.

In SQL a comparison with null is neither true nor false, so no value is known to be outside of a set
that has a null. A query for records that are missing in an output would find none of them. Any
column of `sent` and of an output may have a null.

The same rows are missed where the truth of `x IN (SELECT …)` is a value, such as a column, and is
negated elsewhere: `= false`, `NOT arrived`, CASE. Whether Spark makes it unknown or false then
differs with the plan of the query. So such an IN is only allowed where unknown counts as false: as
a condition that selects rows, and where the query itself says so.

The same holds for a list with the value of a query, `x IN ((SELECT max(y) …), 0)`: it is null for a
query without rows, too.
"""

from __future__ import annotations

from typing import Any

from streamquake.harness.reconcile.sql.sql_tree import MisleadingSql, SqlNode, elements

KEEPING_NULL = ("And", "Or")
"""Parts of a condition that may be unknown where a part of theirs is."""
SELECTING = ("Filter", "UnresolvedHaving", "Join")
"""Plans that select rows by a condition, their only expression."""
OTHERWISE = ("coalesce", "ifnull", "nvl")
"""Functions that give their second argument in place of a null."""
INSTEAD = "write `NOT EXISTS (SELECT ...)` or `LEFT ANTI JOIN`"


def reject_negated_in(node: SqlNode) -> None:
    """Reject an IN with a query below a NOT, or as a value that may be negated elsewhere. Raises
    MisleadingSql, with what to write instead."""
    within, written, instead = node, "IN (SELECT ...)", INSTEAD
    if (of_list := _list_with(node)) is not None:
        within, written = of_list, "IN (..., (SELECT ...))"
        instead += ", or `coalesce((SELECT ...), VALUE)` in the list"
    elif node.class_name != "InSubquery":
        return
    condition, around = _whole_condition(within)
    if around is not None and around.class_name == "Not":
        raise MisleadingSql(
            f"`NOT {written}` is not allowed here: once the inner query returns a null, it is "
            f"true for no row, and rows would be missed; {instead}"
        )
    if around is None or not _counts_unknown_as_false(around, condition.tree):
        raise MisleadingSql(
            f"`{written}` as a value is not allowed here, only as a condition of WHERE, "
            "HAVING, ON or FILTER: once the inner query returns a null, it may be false for no "
            f"row, and rows would be missed; {instead}, or `coalesce(x {written}, false)`"
        )


def _list_with(node: SqlNode) -> SqlNode | None:
    """The IN whose list has the value of this query, which may be null; None where it is in no
    list, and where a literal is given in place of a null."""
    element, around = node, node.parent if node.class_name == "ScalarSubquery" else None
    while around is not None and not around.qualified_name.startswith("plans."):
        if around.class_name == "In":
            return None if around.tree.value().equals(element.tree) else around
        if around.class_name == "UnresolvedFunction" and _replaces_null(around.tree):
            return None
        element, around = around, around.parent
    return None


def _replaces_null(function: Any) -> bool:
    """Whether a function gives a literal in place of a null."""
    last = elements(function.arguments())[-1:]
    return _name_of(function) in OTHERWISE and not any(map(_may_be_null, last))


def _may_be_null(tree: Any) -> bool:
    return tree.getClass().getSimpleName() != "Literal" or _is_literal(tree, "null")


def _whole_condition(node: SqlNode) -> tuple[SqlNode, SqlNode | None]:
    """The condition of AND and OR that a node belongs to, and what it is a part of."""
    condition, around = node, node.parent
    while around is not None and around.class_name in KEEPING_NULL:
        condition, around = around, around.parent
    return condition, around


def _counts_unknown_as_false(around: SqlNode, condition: Any) -> bool:
    """Whether a node has the same result for a condition that is unknown and for a false one."""
    tree = around.tree
    match around.class_name:
        case name if name in SELECTING:
            return True
        case "EqualNullSafe":  # IS TRUE, IS NOT TRUE
            return _is_literal(tree.right(), "true")
        case "UnresolvedFunction":
            chosen = tree.filter()
            return bool(
                (chosen.isDefined() and chosen.get().equals(condition))
                or _is_false_where_unknown(tree, condition)
            )
    return False


def _is_false_where_unknown(function: Any, condition: Any) -> bool:
    """Whether a function gives false in place of an unknown condition."""
    match elements(function.arguments()):
        case [given, otherwise] if _name_of(function) in OTHERWISE:
            return bool(given.equals(condition)) and _is_literal(otherwise, "false")
    return False


def _name_of(function: Any) -> str:
    return str(elements(function.nameParts())[-1]).lower()


def _is_literal(tree: Any, text: str) -> bool:
    return bool(tree.getClass().getSimpleName() == "Literal") and str(tree) == text
