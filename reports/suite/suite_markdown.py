"""The rows of a suite as Markdown, for documentation and code hosts.

A row shows its claim, its setting, its outcome, and a table of its figures with the control's
below. A figure over several runs has their number and range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from streamquake.reports.record import atomic_files
from streamquake.reports.render import run_sentences
from streamquake.reports.render.terminal import escaped
from streamquake.reports.suite.suite_html import change_lines, figures_of, overview
from streamquake.reports.suite.suite_results import RowResult, SuiteFolder, SuiteResults

_MARKUP = re.compile(r"[\\<\[\]|]")
"""Characters that Markdown reads as a tag, a link, a picture or a cell border."""
HARD_BREAK = "  "
"""At the end of a line: starts a new line in the rendered text."""


def write_markdown(results: SuiteResults, folder: SuiteFolder) -> None:
    """Write suite.md beside suite.json."""
    parts = [
        *_conditions(results),
        *_overview(results),
        *_changes(results),
        *(_row(row) for row in results.rows),
    ]
    atomic_files.write_text(folder.markdown, "\n\n".join(parts) + "\n")


def _conditions(results: SuiteResults) -> Iterator[str]:
    if results.conditions:
        yield "\n".join(f"- {_inline(line)}" for line in results.conditions)


def _overview(results: SuiteResults) -> Iterator[str]:
    """Every row on a line, where there are several."""
    if len(results.rows) < 2:
        return
    lines = (
        _line(line.row.outcome_word, line.row.title, line.effect, line.runs)
        for line in overview(results)
    )
    yield "\n".join([_line("", "row", "found", "runs"), "|---|---|---|---|", *lines])


def _changes(results: SuiteResults) -> Iterator[str]:
    """A table of the comparisons with the baseline, where there is one."""
    if not results.against:
        return
    yield f"{HARD_BREAK}\n".join(map(_inline, change_lines(results)))
    if results.changes:
        lines = (_line(each.experiment, each.figure, each.text) for each in results.changes)
        yield "\n".join(
            [_line("experiment", "figure", "against the baseline"), "|---|---|---|", *lines]
        )


def _row(row: RowResult) -> str:
    return "\n\n".join(part for part in _parts(row) if part)


def _parts(row: RowResult) -> Iterator[str]:
    yield "\n".join(_head(row))
    if row.figures:
        yield "\n".join(_table(row))
    if row.claim is not None:
        relations = (f"- {_inline(each.text)}: {each.outcome}" for each in row.claim.relations)
        yield "\n".join(relations if row.claim.published else ())
        yield _sentence(row.claim.note)


def _head(row: RowResult) -> Iterator[str]:
    yield f"**{_inline(row.title)}**{HARD_BREAK}"
    if row.claim is not None and row.claim.published:
        yield f"published: {_inline(row.claim.published)}{HARD_BREAK}"
    if row.unavailable is not None:
        yield f"not measured: {_inline(row.unavailable)}"
        return
    setting = _inline(row.claim.setting) if row.claim is not None else ""
    yield f"{setting}: **{row.outcome_word}**".removeprefix(": ")
    yield from map(_inline, row.reliability)


def _table(row: RowResult) -> Iterator[str]:
    """A line for the row's experiment and one for its control, a column for each figure."""
    shown = list(figures_of(row))
    yield _line("", *_names([figure.name for figure in shown]))
    yield "|" + "---|" * (len(shown) + 1)
    yield _line(f"`{row.experiment}`", *(figure.claim for figure in shown))
    if row.claim is not None and row.claim.control is not None:
        yield _line(f"control `{row.claim.control}`", *(figure.control or "" for figure in shown))


def _names(figures: Sequence[str]) -> Iterator[str]:
    """The names of the figures, without check and unit unless two would have the same name."""
    short = [run_sentences.measured(figure.partition(".")[2], None)[0] for figure in figures]
    for figure, words in zip(figures, short, strict=True):
        yield words if short.count(words) == 1 else figure.replace(".", " ").replace("_", " ")


def _line(*cells: str) -> str:
    return "| " + " | ".join(map(_inline, cells)) + " |"


def _inline(text: str) -> str:
    """A text of a document as a part of one line, with Markdown's special characters escaped."""
    return _MARKUP.sub(lambda sign: f"\\{sign.group()}", escaped(" ".join(text.split())))


def _sentence(text: str | None) -> str:
    text = _inline(text or "")
    return text if not text or text.endswith(".") else f"{text}."
