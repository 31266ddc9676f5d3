"""The log of Spark's file sink: which files of a folder its batches have committed.

`_spark_metadata` (FileStreamSinkLog) has a file for each batch: 0, 1, and so on. Every tenth one is
N.compact, which includes all earlier ones. A file has a line with its version, then a line of JSON
for each committed file. A restarted task, or a batch whose driver died, leaves files that are not
in the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

FOLDER = "_spark_metadata"


def committed_paths(names: Iterable[str], text: Callable[[str], str]) -> list[str] | None:
    """The absolute paths in a log, as they were when it was written; None where there is no log.

    `names` are the names of all files below the folder; `text` reads one of them.
    """
    batches = [PurePosixPath(n) for n in names if PurePosixPath(n).parent.name == FOLDER]
    batches = [batch for batch in batches if batch.stem.isdigit()]
    if not batches:
        return None
    compact = max((int(b.stem) for b in batches if b.suffix == ".compact"), default=-1)
    committed: dict[str, None] = {}
    for batch in sorted(batches, key=lambda b: int(b.stem)):
        if int(batch.stem) < compact or (int(batch.stem) == compact and not batch.suffix):
            continue
        for line in text(str(batch)).splitlines()[1:]:
            entry = json.loads(line)
            if entry["action"] == "delete":
                committed.pop(entry["path"], None)
            else:
                committed[entry["path"]] = None
    return list(committed)


def uncommitted_files(folder: Path, names: Iterable[str]) -> frozenset[str]:
    """The files below a local folder that are not in its log; empty where there is no log."""
    names = list(names)
    paths = committed_paths(names, lambda name: (folder / name).read_text(encoding="utf-8"))
    if paths is None:
        return frozenset()
    committed = {PurePosixPath(path).name for path in paths}
    return frozenset(name for name in names if PurePosixPath(name).name not in committed)
