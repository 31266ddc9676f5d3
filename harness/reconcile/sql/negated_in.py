"""Rejects `NOT IN (SELECT …)`, which no row fulfils once a row of the inner query is null.

In SQL a comparison with null is neither true nor false, so no value is known to be outside of a set
that has a null. A query for records that are missing in an output would find none of them. Any
column of `sent` and of an output may have a null.
"""

from __future__ import annotations

from streamquake.harness.reconcile.sql.sql_tree import SqlNode, UnsafeSql

KEEPING_NULL = ("And", "Or")
"""Parts of a condition that may be unknown where a part of theirs is."""


def reject_negated_in(node: SqlNode) -> None:
    """Reject an IN with a query below a NOT. Raises UnsafeSql, with what to write instead."""
    if node.class_name == "InSubquery" and _is_negated(node):
        raise UnsafeSql(
            "`NOT IN (SELECT ...)` is not allowed here: once the inner query returns a null, it is "
            "true for no row, and rows would be missed; write `NOT EXISTS (SELECT ...)` or "
            "`LEFT ANTI JOIN`"
        )


def _is_negated(node: SqlNode) -> bool:
    """Whether the condition of a node is negated."""
    around = node.parent
    while around is not None and around.class_name in KEEPING_NULL:
        around = around.parent
    return around is not None and around.class_name == "Not"
