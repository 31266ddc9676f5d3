"""Whether the jars and the Python modules that a job brings can be used, as far as their files
show."""

from __future__ import annotations

import ast
import keyword
import re
import sys
import zipfile
import zlib
from difflib import get_close_matches
from pathlib import Path

from streamquake.topologies.named_files import reserved_modules

INSTALLED = (
    "confluent_kafka",
    "dateutil",
    "google",
    "numpy",
    "pandas",
    "py4j",
    "pyarrow",
    "pyspark",
    "pytz",
    "tzdata",
)
"""The packages that every PySpark program can import: Spark's own, and those of its image."""
MANIFEST = "META-INF/MANIFEST.MF"
MAX_MANIFEST_BYTES = 1_000_000
ENTRY_NAMES = ("program-class", "Main-Class")
"""The attributes of a manifest in which Flink looks for the class to start, in this order."""


def jar_problem(jar: Path) -> str | None:
    """Why a file is no jar: a zip archive with entries; None where it is one."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return None if archive.namelist() else f"{jar} is a jar without any entry"
    except (OSError, zipfile.BadZipFile):
        return f"{jar} is no complete jar (a zip archive); build or copy it again"


def entry_problem(jar: Path, entry_class: str | None) -> str | None:
    """Why Flink cannot start a jar; None where it can, as far as its entries show.

    A class that the jar lacks may be in the engine's class path. So a missing one is a problem only
    where the jar has one of a similar name.
    """
    with zipfile.ZipFile(jar) as archive:
        classes = [
            name.removesuffix(".class").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".class")
        ]
        try:
            named = entry_class or _named_by_manifest(archive)
        except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            return f"the manifest of {jar} cannot be read: {error}"
    if named is None:
        return f"the manifest of {jar} names no class to start; name it with `entry_class`"
    if named in classes or not (similar := _similar(named, classes)):
        return None
    return f"{jar} has no class {named} (did you mean {similar}?)"


def _named_by_manifest(archive: zipfile.ZipFile) -> str | None:
    if MANIFEST not in archive.namelist():
        return None
    # A long line goes on in the next one, behind a blank.
    with archive.open(MANIFEST) as file:
        text = file.read(MAX_MANIFEST_BYTES).decode("utf-8", "replace")
    manifest = re.sub(r"\r?\n ", "", text)
    found = (re.search(rf"^{name}:(.*)$", manifest, re.MULTILINE | re.I) for name in ENTRY_NAMES)
    return next((each[1].strip() for each in found if each), None)


def _similar(named: str, classes: list[str]) -> str | None:
    simple = named.rpartition(".")[2]
    same = [each for each in classes if each.rpartition(".")[2] == simple]
    return next(iter(same or get_close_matches(named, classes, n=1, cutoff=0.9)), None)


def module_problem(name: str, text: str) -> str | None:
    """Why a program cannot import a text as a module of this name; None where it can. Python in the
    containers may be older than the one here, so that it may still reject new syntax."""
    if keyword.iskeyword(name):
        return f"`{name}` is a word of Python, so no module can have this name; choose another one"
    if name in reserved_modules() | sys.stdlib_module_names | {*INSTALLED}:
        return f"every program has a module `{name}` already; choose another name"
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"it is no Python: line {error.lineno}: {error.msg}"
    except ValueError as error:
        return f"it is no Python: {error}"
    return None
