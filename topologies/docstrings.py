"""The texts of docstrings as other places show them."""

from __future__ import annotations

import inspect
from typing import Any


def one_line_each(text: str) -> str:
    """A text with each paragraph on one line, for places that show every line break."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def summary(member: type[Any]) -> str:
    """The first paragraph of a class's docstring, as one line."""
    return one_line_each(inspect.getdoc(member) or "").partition("\n\n")[0]
