"""Whether the jars and the Python modules that a job brings can be used, as far as their files
show."""

from __future__ import annotations

import ast
import keyword
import sys
import zipfile
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


def jar_problem(jar: Path) -> str | None:
    """Why a file is no jar: a zip archive with entries; None where it is one."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return None if archive.namelist() else f"{jar} is a jar without any entry"
    except (OSError, zipfile.BadZipFile):
        return f"{jar} is no complete jar (a zip archive); build or copy it again"


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
