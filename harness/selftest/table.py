"""The table of a self-test: a row for each class, a column for each rate; a field counts shapes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamquake.harness.selftest.rates import NOTHING, RATES
from streamquake.harness.selftest.result import CellResult, SelfTest
from streamquake.reports.record.outcome import Outcome, worst
from streamquake.reports.run.text import STYLES, make_console

WORDS = {
    Outcome.HELD: "every planted anomaly was found, and nothing else",
    Outcome.VIOLATED: "the reported anomalies are not the planted ones",
    Outcome.UNDECIDED: "not every cell was judged",
}
MAX_FAILED = 20
"""Failed cells that are printed one by one; the file of `--json` has all."""


def print_table(results: SelfTest, console: Console | None = None) -> None:
    """Print the outcome, the table, the cells that failed, and the command that repeats the
    self-test."""
    console = console or make_console()
    style = f"bold {STYLES[results.outcome]}"
    console.print(
        Text.assemble((str(results.outcome).upper(), style), f"  {WORDS[results.outcome]}")
    )
    held = len(results.cells) - len(results.failed)
    console.print(
        f"{held} of {len(results.cells)} cells held, {results.records:,} records in each shape, "
        f"{results.seconds:.0f} s"
    )
    console.print()
    console.print(_table(results))
    for cell in results.failed[:MAX_FAILED]:
        _print_failed(cell, results.seed, console)
    if (more := len(results.failed) - MAX_FAILED) > 0:
        console.print(f"{more} more failed cells: --json FILE writes all")
    console.print()
    console.print(Text(f"again    {results.again}"), soft_wrap=True)


def _table(results: SelfTest) -> Table:
    """How many of the judged shapes held, for each class and rate."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    rates = {name: rate.label for name, rate in RATES.items()}
    for name in ("class", *rates.values(), "shapes", "s"):
        table.add_column(name, no_wrap=True, justify="left" if name == "class" else "right")
    for plant in dict.fromkeys(sorted(cell.cell.plant for cell in results.cells)):
        row = [cell for cell in results.cells if cell.cell.plant == plant]
        by_rate = [_share(cell for cell in row if cell.cell.rate == rate) for rate in rates]
        shapes = {cell.cell.shape for cell in row}
        last = _share(row) if row[0].cell.rate == NOTHING.name else Text(str(len(shapes)))
        seconds = Text(f"{sum(cell.seconds for cell in row):.1f}")
        table.add_row(Text(plant), *by_rate, last, seconds)
    return table


def _share(cells: Iterable[CellResult]) -> Text:
    cells = list(cells)
    if not cells:
        return Text("–", style="dim")
    held = sum(cell.outcome is Outcome.HELD for cell in cells)
    if held == len(cells):
        return Text(f"{held} held", style=STYLES[Outcome.HELD])
    style = STYLES[worst(cell.outcome for cell in cells)]
    return Text(f"{held} of {len(cells)}", style=style)


def _print_failed(result: CellResult, seed: int, console: Console) -> None:
    console.print()
    style = STYLES[result.outcome]
    description = f"  {result.cell}, seed {seed}, {result.places:,} planted"
    console.print(Text.assemble((str(result.outcome), style), description), soft_wrap=True)
    for line in result.differences or (result.error,):
        console.print(Text(f"  {line}"), soft_wrap=True)
    console.print(Text(f"  again: {result.again}"), soft_wrap=True)
