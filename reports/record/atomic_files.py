"""Files that are either the old one or the new one, never half of either."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block ends well.

    It is on disk (fsync) before it takes the name; when the block raises, `path` stays as it was.
    """
    draft = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a text file (UTF-8) as a whole; it never has other permissions than `mode`."""
    with replacing(path) as draft:
        if mode is not None:
            draft.touch(mode)
        draft.write_text(text, encoding="utf-8")


def point_symlink(link: Path, target: str) -> None:
    """Make `link` point to `target` in one step, also while others do the same."""
    draft = link.with_name(f".{link.name}.{uuid4().hex[:8]}")
    draft.symlink_to(target)
    try:
        draft.replace(link)
    finally:
        draft.unlink(missing_ok=True)
