"""Which files of a folder Spark's file sink has committed."""

from __future__ import annotations

import json
from pathlib import Path

from streamquake.harness.reconcile.spark_sink_log import uncommitted

NAMES = ("part-0.json", "part-1.json", "part-2.json")


def written(folder: Path, **batches: tuple[str, ...]) -> list[str]:
    """The names of some files and of a log with these batches."""
    log = folder / "_spark_metadata"
    log.mkdir()
    for number, names in batches.items():
        entries = [{"path": f"hdfs://x:8020/out/{name}", "action": "add"} for name in names]
        (log / number.removeprefix("n")).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    return [*NAMES, *(f"_spark_metadata/{n.removeprefix('n')}" for n in batches)]


def test_a_file_that_no_batch_names_is_not_committed(tmp_path: Path) -> None:
    names = written(tmp_path, n0=NAMES[:1], n1=NAMES[2:])
    assert "part-1.json" in uncommitted(tmp_path, names)
    assert not uncommitted(tmp_path, names) & {"part-0.json", "part-2.json"}


def test_without_a_log_nothing_is_left_out(tmp_path: Path) -> None:
    assert uncommitted(tmp_path, NAMES) == frozenset()
