"""`errors`: the errors that the nodes of recorded runs logged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from streamquake.harness.cli.completion import complete_run
from streamquake.harness.cli.guard import HELD
from streamquake.harness.cli.options import json_option, new_file_option, out_option
from streamquake.harness.cli.output import echo
from streamquake.reports.record.error_baseline import read_baseline, write_baseline
from streamquake.reports.record.logged_errors import LOG, LoggedError, errors_of_run, grouped
from streamquake.reports.record.run_folder import LATEST, RunFolder
from streamquake.reports.run.text import make_console

WIDTH = 240
"""How many characters of a line are shown."""
SHOWN_LINES = 2


@click.command("errors")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_run)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Show only errors that this baseline does not have.",
)
@new_file_option("--write", "new_baseline", "Write the errors as a baseline of the check `logs`.")
@json_option
@out_option
def errors_command(
    runs: Sequence[str],
    baseline: Path | None,
    new_baseline: Path | None,
    as_json: bool,
    out: Path,
) -> int:
    """Show the errors in the logs of each RUN, by default of the latest one: entries of level ERROR
    or FATAL and stack traces, grouped by the classes of the exceptions and where they were
    thrown."""
    folders = [RunFolder.open(out, run) for run in runs or (LATEST,)]
    known = () if baseline is None else tuple(e.error for e in read_baseline(baseline).errors)
    found = [_errors_of(folder, known) for folder in folders]
    if new_baseline is not None:
        count = len(write_baseline(new_baseline, found).errors)
        echo(f"{new_baseline}: kinds of errors: {count}, runs: {len(found)}", err=as_json)
    elif not as_json:
        _print(found)
    if as_json:
        rows = [
            {"run": folder.run_id, "error": e.signature, "text": e.text, "nodes": e.nodes}
            for folder, errors in zip(folders, found, strict=True)
            for e in errors
        ]
        echo(json.dumps(rows, indent=2))
    return HELD


def _errors_of(folder: RunFolder, known: Sequence[str]) -> tuple[LoggedError, ...]:
    """The errors of a run without the known ones. A log that cannot be read is named."""
    if not any(folder.logs.glob(f"*/{LOG}")):
        echo(f"left out: {folder.path}: it has no logs", err=True)

    def leave_out(log: Path, reason: Exception) -> None:
        echo(f"left out: {log}: {reason}", err=True)

    errors = errors_of_run(folder.logs, leave_out)
    return grouped((node, error) for node, error in errors if error.signature not in known)


def _print(found: Sequence[Sequence[LoggedError]]) -> None:
    runs = Counter(error.signature for errors in found for error in errors)
    if not runs:
        echo("no errors")
        return
    table = Table("runs", "times", "nodes", "error", show_lines=True)
    for signature, count in sorted(runs.items(), key=lambda item: (-item[1], item[0])):
        same = [e for errors in found for e in errors if e.signature == signature]
        nodes = sorted({node for error in same for node in error.nodes})
        table.add_row(
            f"{count} of {len(found)}",
            str(sum(error.count for error in same)),
            Text("\n".join(nodes)),
            Text(_shown(same[0])),
        )
    make_console().print(table)


def _shown(error: LoggedError) -> str:
    """Its signature, and the first lines of one of its texts."""
    lines = (error.signature, *error.text.splitlines()[:SHOWN_LINES])
    return "\n".join(line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in lines)
