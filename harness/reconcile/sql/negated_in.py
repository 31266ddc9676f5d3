"""Rejects `NOT IN (SELECT …)`, which no row fulfils once a row of the inner query is null.

In SQL a comparison with null is neither true nor false, so no value is known to be outside of a set
that has a null. A query for records that are missing in an output would find none of them. Any
column of `sent` and of an output may have a null.

The same rows are missed where the truth of `x IN (SELECT …)` is a value, such as a column, and is
negated elsewhere: `= false`, `NOT arrived`, CASE. Whether Spark makes it unknown or false then
differs with the plan of the query. So such an IN is only allowed where unknown counts as false: as
a condition that selects rows, and where the query itself says so.
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
    if node.class_name != "InSubquery":
        return
    condition, around = _whole_condition(node)
    if around is not None and around.class_name == "Not":
        raise MisleadingSql(
            "`NOT IN (SELECT ...)` is not allowed here: once the inner query returns a null, it is "
            f"true for no row, and rows would be missed; {INSTEAD}"
        )
    if around is None or not _counts_unknown_as_false(around, condition.tree):
        raise MisleadingSql(
            "`IN (SELECT ...)` as a value is not allowed here, only as a condition of WHERE, "
            "HAVING, ON or FILTER: once the inner query returns a null, it may be false for no "
            f"row, and rows would be missed; {INSTEAD}, or `coalesce(x IN (SELECT ...), false)`"
        )


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
    name = str(elements(function.nameParts())[-1]).lower()
    match elements(function.arguments()):
        case [given, otherwise] if name in OTHERWISE:
            return bool(given.equals(condition)) and _is_literal(otherwise, "false")
    return False


def _is_literal(tree: Any, text: str) -> bool:
    return bool(tree.getClass().getSimpleName() == "Literal") and str(tree) == text
