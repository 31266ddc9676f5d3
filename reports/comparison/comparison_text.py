"""The table of a comparison at the end of its runs, for terminals and CI."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamquake.reports.comparison.comparison_html import SHOWN, headline, rows
from streamquake.reports.comparison.comparison_results import ComparisonFolder, TopologyComparison
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.render.run_sentences import counted
from streamquake.reports.run.text import STYLES, make_console


def print_comparison(
    comparison: TopologyComparison, folder: ComparisonFolder, console: Console | None = None
) -> None:
    """Print the table, the differences of the outputs, and the paths of the files."""
    console = console or make_console()
    verdict = Text(headline(comparison).upper(), style=f"bold {STYLES[comparison.verdict]}")
    named = f"  {comparison.experiment}, seed {comparison.seed}"
    console.print(Text.assemble(verdict, named))
    if comparison.reason:
        console.print(Text(comparison.reason))
    console.print()
    console.print(_table(comparison))
    if comparison.differences:
        console.print()
        console.print(_differences(comparison))
    for run in comparison.runs:
        if not run.as_expected:
            console.print(Text(f"{run.topology}: {run.why}"), soft_wrap=True)
    for warning in comparison.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    console.print()
    for name, path in (("results", folder.results), ("page", folder.page)):
        console.print(Text(f"{name:8} {path}"), soft_wrap=True)
    console.print(Text(f"again    {comparison.again}"), soft_wrap=True)


def _table(comparison: TopologyComparison) -> Table:
    """A column for each topology: outcome, run, checks, figures."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("", *(run.topology for run in comparison.runs)):
        table.add_column(column, overflow="fold")
    outcomes = [
        Text(str(run.outcome), style=f"bold {STYLES[run.outcome]}") for run in comparison.runs
    ]
    table.add_row("outcome", *outcomes)
    ids = [run.results.run_id if run.results else "–" for run in comparison.runs]
    table.add_row("run", *ids)
    words = {str(outcome): STYLES[outcome] for outcome in Outcome}
    for name, values in rows(comparison):
        table.add_row(name, *(Text(value, style=words.get(value, "")) for value in values))
    return table


def _differences(comparison: TopologyComparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("output", "missing on", "missing", "added", "changed", "by value"):
        table.add_column(column, overflow="fold")
    for each in comparison.differences:
        message = SHOWN[each.outcome] + (f": {each.why}" if each.why else "")
        style = "" if each.outcome is None else STYLES[each.outcome]
        numbers = (counted(n) for n in (each.missing, each.added, each.changed))
        table.add_row(Text(each.output), Text(each.other), *numbers, Text(message, style=style))
    return table
