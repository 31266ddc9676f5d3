"""The page of one run: a single file that works offline and loads nothing from a network.

The charting library is embedded, compressed, and the browser decompresses it. A content security
policy forbids every request, so a hostile name in a record cannot cause one.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamquake.reports.record import atomic_files
from streamquake.reports.record.history import History, read_so_far
from streamquake.reports.record.metrics import read_metrics
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.record_parts import RecordParts
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.reports.render.page_links import for_script
from streamquake.reports.run.panels.panel_parts import Panel
from streamquake.reports.run.timeline_charts import panels
from streamquake.topologies.yaml_text import yaml_text


def render_report(folder: RunFolder) -> Path:
    """Write report.html from the files of the run folder, and return its path.

    A run that ended before it was judged also gets a page, as undecided. The page lists the parts
    that cannot be derived because of a damaged event, and shows the others. Raises ValueError when
    a file of the folder cannot be read, FileNotFoundError when it has no manifest.
    """
    manifest = folder.read_manifest()
    history, damage = _read_history(folder)
    results = folder.read_results() if folder.results.exists() else _not_judged(manifest)
    table = read_metrics(folder.metrics)
    parts = RecordParts()
    if damage:
        parts.problems.append(damage)
    template = page_environment().get_template("report.html.j2")
    page = template.render(
        manifest=manifest,
        results=results,
        headline=run_sentences.headline(results),
        why=run_sentences.why(results),
        more_reason=run_sentences.more_reason(results),
        figures=parts.derive(
            "the key figures",
            lambda: run_sentences.key_figures(history, results),
            otherwise=dict[str, str](),
        ),
        machine=parts.derive(
            "the machine",
            lambda: run_sentences.machine(manifest.get("machine", {})),
            otherwise="",
        ),
        cluster=parts.derive(
            "the cluster", lambda: run_sentences.cluster_text(history), otherwise=""
        ),
        recoveries=[(title, _bars(phases)) for title, phases in results.titled_recoveries],
        panels=panels(history, table, parts),
        problems=parts.problems,
        plan=yaml_text(manifest.get("experiment", {})),
        logs=_log_links(folder),
        library=charting_library(),
    )
    atomic_files.write_text(folder.report, page)
    return folder.report


def _read_history(folder: RunFolder) -> tuple[History, str]:
    """The events up to the first damage, and the damage as a message. A run that ended early may
    have no history."""
    return read_so_far(folder.history) if folder.history.exists() else (History(), "")


def _not_judged(manifest: dict[str, Any]) -> Results:
    """Undecided results for a run whose harness ended before it wrote results."""
    return Results(
        run_id=str(manifest.get("run_id", "")),
        experiment=str(manifest.get("experiment", {}).get("name", "")),
        seed=int(manifest.get("seed", 0)),
        ended="interrupted",
        outcome=Outcome.UNDECIDED,
        reason="the harness ended before anything was judged; `streamquake check` can judge it now",
    )


@dataclass(frozen=True, kw_only=True)
class RecoveryBar:
    """One phase of the recovery; `left` and `width` are percentages of the whole recovery."""

    name: str
    after_s: float | None
    left: float = 0.0
    width: float = 0.0


def _bars(recovery: Mapping[str, float | None]) -> tuple[RecoveryBar, ...]:
    milestones = run_sentences.milestones(recovery)
    whole_s = max((value for _, value in milestones if value), default=0.0) or 1.0
    bars, before_s = [], 0.0
    for name, after_s in milestones:
        if after_s is None:
            bars.append(RecoveryBar(name=name, after_s=None))
            continue
        left, width = 100 * before_s / whole_s, 100 * (after_s - before_s) / whole_s
        bars.append(RecoveryBar(name=name, after_s=after_s, left=left, width=width))
        before_s = after_s
    return tuple(bars)


def _log_links(folder: RunFolder) -> list[tuple[str, str]]:
    """(name, relative address) of every log file."""
    files = sorted(path for path in folder.logs.rglob("*") if path.is_file())
    return [
        (
            str(path.relative_to(folder.logs)),
            quote(str(path.relative_to(folder.path))),
        )
        for path in files
    ]


@lru_cache(maxsize=1)
def page_environment() -> Environment:
    """The template environment of the pages, which compiles each template once. It escapes every
    value; an unknown name is an error."""
    environment = Environment(
        loader=PackageLoader("streamquake.reports.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "as_text": run_sentences.finding_text,
        "measured": _measured,
        "fault_result": run_sentences.fault_result,
        "figure": _figure_json,
    }
    return environment


def _measured(counts: Mapping[str, float | None]) -> list[tuple[str, str]]:
    return [run_sentences.measured(name, count) for name, count in counts.items()]


def _figure_json(panel: Panel) -> Markup:
    """A figure as JSON."""
    text: str = panel.figure.to_json()
    return for_script(text)


@lru_cache(maxsize=1)
def charting_library() -> str:
    """plotly.js, gzip, base64: under two megabytes instead of five."""
    script = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(script, compresslevel=9, mtime=0)).decode("ascii")
