"""CSV: the fields of a record between commas, without a header, text in quotes (RFC 4180)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

from streamquake.harness.workloads.data_sets.column_types import JSON
from streamquake.harness.workloads.data_sets.json_line import json_text


def csv_encoding(columns: Mapping[str, str]) -> Callable[[Mapping[str, Any]], bytes]:
    """Encodes the fields in the order of these columns, objects and lists as the text of their
    JSON."""

    def encode(record: Mapping[str, Any]) -> bytes:
        if absent := next((name for name in columns if record.get(name) is None), None):
            raise ValueError(
                f"{absent} has no value, and CSV cannot tell none from empty text; give it one, "
                "or send JSON or Avro"
            )
        row = io.StringIO()
        writer = csv.writer(row, quoting=csv.QUOTE_NONNUMERIC, lineterminator="")
        writer.writerow([_field(kind, record[name]) for name, kind in columns.items()])
        return row.getvalue().encode()

    return encode


def _field(kind: str, value: Any) -> Any:
    """A value as `csv` writes it: numbers as they are, all else as text."""
    return json_text(value) if kind in (JSON, "BOOLEAN") else value
