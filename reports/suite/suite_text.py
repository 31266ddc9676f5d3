"""The table of a suite at the end of its runs, for terminals and CI."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamquake.reports.run.text import STYLES, make_console
from streamquake.reports.suite.suite_html import (
    change_lines,
    figures_of,
    headline,
    reused_lines,
)
from streamquake.reports.suite.suite_results import RowResult, SuiteFolder, SuiteResults


def print_suite(results: SuiteResults, folder: SuiteFolder, console: Console | None = None) -> None:
    """Print the table, the reasons of unexpected rows, and the paths of the files."""
    console = console or make_console()
    verdict = Text(headline(results).upper(), style=f"bold {STYLES[results.verdict]}")
    console.print(Text.assemble(verdict, f"  suite {results.suite}, seed {results.seed}"))
    console.print(Text(results.counted + (f"; {results.reason}" if results.reason else "")))
    console.print()
    console.print(_table(results))
    for row in results.rows:
        for line in row_remarks(row):
            console.print(Text(f"{row.title}: {line}"), soft_wrap=True)
    for line in (*reused_lines(results), *change_lines(results)):
        console.print(Text(line), soft_wrap=True)
    for warning in results.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    console.print()
    for name, path in (("results", folder.results), ("page", folder.page)):
        console.print(Text(f"{name:8} {path}"), soft_wrap=True)
    console.print(Text(f"again    {results.again}"), soft_wrap=True)
    if results.ended == "interrupted":
        console.print(Text(f"resume   {results.again} --resume"), soft_wrap=True)


def row_remarks(row: RowResult) -> Iterator[str]:
    """What a reader must know of a row beside its outcome."""
    if row.unavailable or (row.verdict is not None and not row.as_expected):
        yield row.why
    yield from row.reliability


def _table(results: SuiteResults) -> Table:
    """The table: for each row its outcome and its claim or experiment, and below it a line for each
    figure."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    claims = any(row.claim for row in results.rows)
    table.add_column("outcome", no_wrap=True)
    table.add_column("claim, setting, figures" if claims else "experiment", overflow="fold")
    table.add_column("measured", overflow="fold")
    if claims:
        table.add_column("control", overflow="fold")
    for row in results.rows:
        for cells in _lines(row):
            table.add_row(*cells[: len(table.columns)])
    return table


def _lines(row: RowResult) -> Iterator[list[Text]]:
    style = "dim" if row.verdict is None else STYLES[row.verdict]
    yield [Text(_outcome(row), style=style), Text(row.title)]
    if row.claim is not None and row.claim.published:
        yield [Text(""), Text(f"  published: {row.claim.published}", style="dim")]
    if row.claim is not None and row.claim.setting:
        yield [Text(""), Text(f"  {row.claim.setting}", style="dim")]
    for figure in figures_of(row):
        name = Text(f"  {figure.name}", style="dim")
        yield [Text(""), name, Text(figure.claim), Text(figure.control or "")]
    for relation in row.claim.relations if row.claim else ():
        yield [Text(""), Text(f"  {relation.text}", style=STYLES[relation.outcome])]


def _outcome(row: RowResult) -> str:
    needs_no_expectation = row.verdict is None or row.as_expected or row.claim is not None
    return row.outcome_word + ("" if needs_no_expectation else f", {row.expected} expected")
