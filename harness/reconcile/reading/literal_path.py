"""Paths escaped for Spark, which reads some of their characters as a pattern."""

from __future__ import annotations

import re
from pathlib import Path


def literal_path(path: Path | str) -> str:
    """The path with its pattern characters escaped: `out[1]` is this folder, and not `out1`."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))
