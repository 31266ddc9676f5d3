"""Tables of records as `topic_records` reads them, from rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streamquake.harness.reconcile.reading.topic_records import SCHEMA


def record_table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """A table of records with the columns of `SCHEMA`; keys and values may be texts."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    return pa.table(
        [
            pa.array([_as_bytes(cell) for cell in column], field.type)
            if pa.types.is_binary(field.type)
            else pa.array(column, field.type)
            for column, field in zip(columns, SCHEMA, strict=True)
        ],
        schema=SCHEMA,
    )


def _as_bytes(cell: object) -> object:
    return cell.encode() if isinstance(cell, str) else cell
