"""`prune`: free the space of old runs; the store keeps their results."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from streamquake.harness.cli.guard import HELD
from streamquake.harness.cli.options import out_option
from streamquake.harness.cli.output import echo
from streamquake.reports.record.run_folder import LATEST, RunFolder, list_runs
from streamquake.reports.store.results_store import ResultsStore

MIB = 2**20


@click.command("prune")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    required=True,
    metavar="N",
    help="Keep the newest N runs of each experiment.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@out_option
def prune_command(keep: int, dry_run: bool, out: Path) -> int:
    """Remove the folders of old runs, except for runs that had another outcome than the expected
    one, that were not judged, or whose cluster is up. `results` still knows the removed ones."""
    store = ResultsStore(out)
    store.rebuild()
    stored = {run.run_id for run in store.runs()}
    freed = removed = 0
    for folder in _superfluous(out, keep):
        if folder.run_id not in stored:
            echo(f"kept: {folder.run_id} is not in {store.path}")
            continue
        freed += _size_bytes(folder.path)
        removed += 1
        if not dry_run:
            shutil.rmtree(folder.path)
    latest = out / LATEST
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
    verb = "would be removed" if dry_run else "removed"
    echo(f"{removed} runs {verb}, {freed / MIB:,.0f} MiB")
    return HELD


def _superfluous(out: Path, keep: int) -> Iterator[RunFolder]:
    """The runs beyond the newest `keep` of their experiment that were as expected."""
    seen = Counter[str]()
    for folder in list_runs(out):
        try:
            results = folder.read_results()
        except (OSError, ValueError):
            continue
        seen[results.experiment] += 1
        if seen[results.experiment] > keep and results.as_expected:
            yield folder


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
