"""Copies files of lines into Parquet without Spark, whose job takes a second for the small files of
a usual run. What Spark would read in another way than byte by byte is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamquake.harness.reconcile.reading.stored_output import ROW_GROUP

MAX_BYTES = 64 << 20
"""Of all files together, since they are held in memory."""
PLAIN_NAME = re.compile(r"[\w./-]+", re.ASCII)
"""Spark writes other names in the form of a URL."""
PLAIN_SUFFIXES = ("", ".json", ".jsonl", ".ndjson", ".txt")
"""Other suffixes may name a compression."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SCHEMA = pa.schema([("value", pa.string()), ("file", pa.string()), ("position", pa.int64())])


def copy_lines(names: Mapping[Path, str], into: Path) -> bool:
    """Write the lines of some files (path -> name in the record) with the columns of `files.py`, in
    new folder `into`. False, with nothing written, where Spark has to read them: large or
    compressed files, names with other characters, and ends of lines or marks that Spark drops.
    """
    if not names or not all(map(_is_plain, names.values())):
        return False
    if sum(path.stat().st_size for path in names) > MAX_BYTES:
        return False
    contents = {name: path.read_bytes() for path, name in names.items()}
    if any(b"\r" in text or text.startswith(BYTE_ORDER_MARK) for text in contents.values()):
        return False
    tables = [_table(name, text) for name, text in contents.items()]
    into.mkdir(parents=True)
    pq.write_table(pa.concat_tables(tables), into / "part-0.parquet", row_group_size=ROW_GROUP)
    return True


def _is_plain(name: str) -> bool:
    return bool(PLAIN_NAME.fullmatch(name)) and Path(name).suffix in PLAIN_SUFFIXES


def _table(name: str, text: bytes) -> pa.Table:
    """The lines of one file. A line is stored as it is, even if it is no UTF-8: it is malformed,
    not lost."""
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    columns = [
        pa.array(lines, pa.binary()).view(pa.string()),
        pa.array([name] * len(lines), pa.string()),
        pa.array(range(len(lines)), pa.int64()),
    ]
    return pa.table(columns, schema=SCHEMA)
