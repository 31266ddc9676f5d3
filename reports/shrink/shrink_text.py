"""What a shrink found, for terminals and CI."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from streamquake.reports.run.text import STYLES, make_console
from streamquake.reports.shrink.shrink_results import ShrinkFolder, ShrinkResults


def print_shrink(
    results: ShrinkResults, folder: ShrinkFolder, console: Console | None = None
) -> None:
    """Print what was taken away, how often the smallest experiment fails, and the files."""
    console = console or make_console()
    title = Text(results.headline.upper(), style=f"bold {STYLES[results.outcome]}")
    console.print(Text.assemble(title, f"  {results.experiment}: {results.failure}"))
    for line in sentences(results):
        console.print(Text(line), soft_wrap=True)
    for line in results.taken_away:
        console.print(Text(f"    {line}"), soft_wrap=True)
    for warning in results.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    console.print()
    for run in results.runs:
        console.print(Text(f"{run.outcome:9} {folder.path.parent}/{run.run}"), soft_wrap=True)
    for name, path in (("smallest", folder.smallest), ("page", folder.page)):
        if path.exists():
            console.print(Text(f"{name:9} {path}"), soft_wrap=True)
    if results.rate is not None:
        console.print(Text(f"{'run it':9} streamquake run {folder.smallest}"), soft_wrap=True)
    if not results.is_smallest:
        console.print(Text(f"{'go on':9} {results.again}"), soft_wrap=True)


def sentences(results: ShrinkResults) -> Iterator[str]:
    """The result as sentences, for the terminal and the page."""
    if results.reason:
        yield results.reason
    if results.rate is not None:
        yield f"it fails in {results.rate} decided tries; a candidate counts with {results.rule}"
    counted = sum(each.counts is True for each in results.candidates)
    yield (
        f"{len(results.candidates)} candidates, {counted} count; {results.runs_made} runs on "
        f"{results.deployments} clusters in {results.elapsed_s:.0f} s"
    )
    if results.undecided:
        yield f"{len(results.undecided)} candidates had undecided tries"
    yield "taken away:" if results.taken_away else "nothing was taken away"
