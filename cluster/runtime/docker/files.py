"""Files into and out of containers, as the tar archives of the engine's API."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

IN_MEMORY_BYTES = 8 * 1024 * 1024


def packed(files: Mapping[str, str | bytes], now_s: float) -> bytes:
    """The archive of some files, to be unpacked at `/`: absolute path -> content. Scripts (`#!`)
    are executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, given in files.items():
            content = given.encode() if isinstance(given, str) else given
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size = len(content)
            member.mode = 0o755 if content.startswith(b"#!") else 0o644
            member.mtime = int(now_s)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def unpack(chunks: Iterable[bytes], target: Path) -> None:
    """Unpack an archive into a folder, without members that point outside it."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as spool:
        for chunk in chunks:
            spool.write(chunk)
        spool.seek(0)
        _extract(spool, target)


def _extract(spool: IO[bytes], target: Path) -> None:
    with tarfile.open(fileobj=spool) as archive:
        archive.extractall(target, filter=_safe_member)


def _safe_member(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    """The member, or None to skip it: log folders contain links to paths such as /dev/stdout."""
    try:
        return tarfile.data_filter(member, target)
    except tarfile.FilterError:
        return None
