"""`coverage`: which fault met which phase of the protocol in the recorded runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.harness.cli.guard import HELD
from streamquake.harness.cli.options import json_option, new_file_option, out_option
from streamquake.harness.cli.output import echo
from streamquake.harness.coverage.recorded_coverage import coverage_of, runs_below
from streamquake.reports.coverage.coverage_html import render_coverage
from streamquake.reports.coverage.coverage_text import (
    coverage_table,
    never_hit_lines,
    summary_lines,
)
from streamquake.reports.run.text import make_console

PAGE = "coverage.html"


@click.command("coverage")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--never", is_flag=True, help="List the cells that no run hit.")
@new_file_option("--page", "page", f"The page to write; {PAGE} in the folder unless given.")
@json_option
@out_option
def coverage_command(
    runs: Sequence[Path], never: bool, page: Path | None, as_json: bool, out: Path
) -> int:
    """Show which fault met which phase of the protocol, from the records in the folders RUNS.

    A number counts the injections that are proven to have taken effect in the phase: green where
    all runs had the expected outcome, red where one had not. `?2` are two that may have, `·` was
    never hit, and an empty cell is not possible.
    """
    folders = runs or (out,)
    found = list(runs_below(folders))
    coverage = coverage_of(found)
    for problem in coverage.problems:
        echo(f"left out: {problem}", err=True)
    if not coverage.runs:
        echo(f"no judged runs in {', '.join(map(str, folders))}", err=as_json)
    if as_json:
        echo(json.dumps(coverage.to_json(), indent=2))
    elif coverage.runs:
        make_console().print(coverage_table(coverage))
        echo("\n" + "\n".join(summary_lines(coverage)))
    if never and not as_json:
        echo("\n" + "\n".join(never_hit_lines(coverage.never_hit())))
    if coverage.runs:
        echo(str(render_coverage(coverage, page or folders[0] / PAGE)), err=as_json)
    return HELD
