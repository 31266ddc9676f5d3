"""Compile the small Java programs of the images, with a compiler that needs no JDK."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from streamquake.cluster.images.clients import run_here

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every entry, so that equal sources give an equal jar."""


def compile_jar(compiler: Path, sources: Path, class_path: Iterable[Path], jar: Path) -> None:
    """Compile a source folder into a jar."""
    with tempfile.TemporaryDirectory() as temporary:
        classes = Path(temporary)
        path = ":".join(str(entry) for entry in class_path)
        flags = ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-cp", path]
        command = ["java", "-jar", str(compiler), *flags, "-d", str(classes), str(sources)]
        run_here(f"compiling {jar.name}", command, sources)
        zip_folder(classes, jar)


def zip_folder(folder: Path, jar: Path) -> None:
    """Pack a folder, with entries for its folders: class loaders find some of them by name."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix() + ("/" if path.is_dir() else "")
            with archive.open(zipfile.ZipInfo(name, EPOCH), "w") as out:
                if path.is_file():
                    with path.open("rb") as content:
                        shutil.copyfileobj(content, out)
