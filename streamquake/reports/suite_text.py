"""The table of a suite at the end of its runs, for terminals and CI."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamquake.reports.suite import NOT_RUN, Figures, RowResult, SuiteFolder, SuiteResults
from streamquake.reports.suite_html import headline, measured
from streamquake.reports.text import STYLES, make_console


def print_suite(results: SuiteResults, folder: SuiteFolder, console: Console | None = None) -> None:
    """Print the table, what is to be known of single rows, and where everything is."""
    console = console or make_console()
    verdict = Text(headline(results).upper(), style=f"bold {STYLES[results.verdict]}")
    console.print(Text.assemble(verdict, f"  suite {results.suite}, seed {results.seed}"))
    console.print(Text(results.counted + (f"; {results.reason}" if results.reason else "")))
    console.print()
    console.print(_table(results))
    for row in results.rows:
        if row.verdict is not None and not row.as_expected:
            console.print(Text(f"{row.title}: {row.why}"), soft_wrap=True)
    for warning in results.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    console.print()
    for name, path in (("results", folder.results), ("page", folder.page)):
        console.print(Text(f"{name:8} {path}"), soft_wrap=True)
    console.print(Text(f"again    {results.again}"), soft_wrap=True)


def _table(results: SuiteResults) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    claims = any(row.claim for row in results.rows)
    table.add_column("claim" if claims else "experiment", overflow="fold", ratio=3)
    if claims:
        table.add_column("setting", overflow="fold", ratio=2)
    table.add_column("measured", overflow="fold", ratio=2)
    if claims:
        table.add_column("control", overflow="fold", ratio=2)
    table.add_column("outcome", no_wrap=True)
    for row in results.rows:
        table.add_row(*_cells(row, claims))
    return table


def _cells(row: RowResult, claims: bool) -> list[Text]:
    own = Text(_figures(row.figures))
    if row.verdict is None:
        outcome = Text(NOT_RUN, style="dim")
    else:
        outcome = Text(_outcome(row), style=STYLES[row.verdict])
    if not claims:
        return [Text(row.title), own, outcome]
    setting = row.claim.setting if row.claim else ""
    control = Text(_figures(row.claim.control_figures) if row.claim else "")
    return [Text(row.title), Text(setting), own, control, outcome]


def _outcome(row: RowResult) -> str:
    expected = "" if row.as_expected else f", {row.expected} expected"
    return f"{row.outcome}{'' if row.claim else expected}"


def _figures(figures: Figures) -> str:
    return "\n".join(f"{name} {measured(spread, name)}" for name, spread in figures.items())
