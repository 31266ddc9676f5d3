"""The class archive of Spark's virtual machine, which halves the work of its start.

An archive (JEP 350) has the classes that an earlier process loaded, in the form that the virtual
machine works with. It is used where Java and the class path are those of the archive; else Java
ignores it. Jars at the end of the class path do no harm, so those of a session come last.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyspark

from streamquake.cluster.images.fetch import cache_root, cached
from streamquake.topologies.errors import ErrorKind, StreamquakeError

PREFIX = "spark-classes-"
_ARCHIVE, _SIZE, _JARS = "spark.jsa", "size", "jars"
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


class ArchiveNotWritten(StreamquakeError):
    """The virtual machine ended without an archive, such as for lack of space."""

    kind = ErrorKind.MACHINE_UNSUITABLE


def options_to_use_archive(java: str) -> list[str]:
    """The options of the virtual machine that `java` starts; none where it has no archive."""
    try:
        folder = cache_root() / "sets" / _key(java)
    except RuntimeError:  # the user has no home
        return []
    if not _is_whole(folder):
        return []
    return ["-Xshare:auto", f"-XX:SharedArchiveFile={folder / _ARCHIVE}", *_QUIET]


def options_to_write_archive(archive: Path) -> list[str]:
    """The options of a virtual machine that writes its classes into a file when it ends."""
    return [f"-XX:ArchiveClassesAtExit={archive}", *_QUIET]


def ensure_archive(java: str, write: Callable[[Path], None]) -> None:
    """Let `write` write the archive into a file, unless it is there. Archives of packages that are
    gone are removed. Raises ArchiveNotWritten, OSError and what `write` raises."""

    def fill(folder: Path) -> None:
        for other in (cache_root() / "sets").glob(f"{PREFIX}*"):
            if not _packages_of(other).is_dir():
                shutil.rmtree(other, ignore_errors=True)
        (folder / _JARS).write_text(str(_packages()), encoding="utf-8")
        write(folder / _ARCHIVE)
        if not (folder / _ARCHIVE).is_file():
            raise ArchiveNotWritten("Java wrote none")
        size = (folder / _ARCHIVE).stat().st_size
        (folder / _SIZE).write_text(str(size), encoding="utf-8")

    folder = cache_root() / "sets" / _key(java)
    if folder.is_dir() and not _is_whole(folder):
        shutil.rmtree(folder)
    cached(_key(java), fill)


def _is_whole(folder: Path) -> bool:
    """Whether the archive in a folder can be read and has its size: Java crashes with the beginning
    of one."""
    try:
        return str((folder / _ARCHIVE).stat().st_size) == (folder / _SIZE).read_text("utf-8")
    except (OSError, ValueError):
        return False


def _key(java: str) -> str:
    """A name for this Java and these packages: an archive fits only the files at its own paths."""
    real = Path(java).resolve()
    state = real.stat()
    parts = (real, state.st_size, state.st_mtime_ns, _packages(), pyspark.__version__)
    text = os.linesep.join(map(str, parts))
    return PREFIX + hashlib.sha256(text.encode()).hexdigest()[:12]


def _packages() -> Path:
    return Path(pyspark.__file__).parent


def _packages_of(folder: Path) -> Path:
    try:
        return Path((folder / _JARS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return folder / "missing"
