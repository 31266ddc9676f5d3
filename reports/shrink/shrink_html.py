"""The page of a shrink: what was taken away, the smallest experiment, and every candidate.

Works offline, with links to the pages of the runs.
"""

from __future__ import annotations

from pathlib import Path

from streamquake.reports.record import atomic_files
from streamquake.reports.render.page_links import page_link
from streamquake.reports.run.html import page_environment
from streamquake.reports.shrink.shrink_results import ShrinkFolder, ShrinkResults, TriedRun
from streamquake.reports.shrink.shrink_text import sentences

TAGS = {"fails": "violated", "passes": "held", "undecided": "undecided"}
"""Outcome of a try -> the class of its tag."""


def render_shrink(results: ShrinkResults, folder: ShrinkFolder) -> Path:
    """Write shrink.html beside shrink.json, and return its path."""
    smallest = folder.smallest.read_text("utf-8") if folder.smallest.exists() else ""
    page = (
        page_environment()
        .get_template("shrink.html.j2")
        .render(
            results=results,
            sentences=list(sentences(results)),
            smallest=smallest,
            tags=TAGS,
            link=lambda run: _link(run, folder),
        )
    )
    atomic_files.write_text(folder.page, page)
    return folder.page


def _link(run: TriedRun, folder: ShrinkFolder) -> str:
    """The page of a run, relative to the shrink's; empty where there is none."""
    if run.run is None:
        return ""
    return page_link(folder.path.parent / run.run / "report.html", folder.path)
