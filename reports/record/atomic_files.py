"""Atomic writes: a file has either its old or its new content, never a part of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield a path to write to. It replaces `path` when the block ends without an error.

    The new file is on disk (fsync) before it is renamed. When the block raises, `path` is
    unchanged.
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
    """Replace a text file (UTF-8) as a whole. The new file has the permissions `mode` from the
    start."""
    with atomic_replacement(path) as draft:
        if mode is not None:
            draft.touch(mode)
        draft.write_text(text, encoding="utf-8")


def point_symlink(link: Path, target: str) -> None:
    """Make `link` point to `target` in one step, also while other processes do the same."""
    draft = link.with_name(f".{link.name}.{uuid4().hex[:8]}")
    draft.symlink_to(target)
    try:
        draft.replace(link)
    finally:
        draft.unlink(missing_ok=True)
