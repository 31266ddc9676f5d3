"""`python -m streamquake.harness.reference [FOLDER]`: writes the pages into a folder, by default
`docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from streamquake.harness.reference.pages import PAGES

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
