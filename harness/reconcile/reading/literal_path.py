"""Paths as Spark takes them for reading: it would read some of their signs as a pattern."""

from __future__ import annotations

import re
from pathlib import Path


def literal_path(path: Path | str) -> str:
    """The path, meaning itself: `out[1]` is that folder, and not `out1`."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path))
