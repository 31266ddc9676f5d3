"""Links from one page to another, and data for the scripts of a page."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup


def page_link(page: Path, folder: Path) -> str:
    """The address of a page, relative to the folder of another; empty where there is none."""
    return quote(os.path.relpath(page, folder)) if page.exists() else ""


def for_script(document: str) -> Markup:
    """A JSON document, escaped for a script element."""
    for sign, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        document = document.replace(sign, escape)
    return Markup(document)
