"""`compose`: a topology as docker-compose files, written, printed or compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from streamquake.cluster.compose import DOCUMENT, FOLDER, compose_files
from streamquake.harness.cli.guard import HELD, UNDECIDED
from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.loader import topology_for_use

DEFAULT = "flink-kafka-hdfs"


@click.command("compose")
@click.argument("topology", default=DEFAULT)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path(),
    help="Folder to write to; the current one unless given.",
)  # fmt: skip
@click.option("--print", "printed", is_flag=True, help=f"Print {DOCUMENT} and write nothing.")
@click.option(
    "--check", is_flag=True, help="Only compare with what is there; exit 3 if it differs."
)
def compose_command(topology: str, out: Path, printed: bool, check: bool) -> int:
    """Write TOPOLOGY as docker-compose.yml, with its configuration files in a folder beside it."""
    files = compose_files(topology_for_use(topology))
    if printed:
        echo(files[DOCUMENT], nl=False)
        return HELD
    different = _different(out, files)
    if check:
        for name in different:
            echo(f"{out / name}: not as `streamquake compose {topology}` writes it", err=True)
        return UNDECIDED if different else HELD
    for name in different:
        _bring(out / name, files.get(name))
    echo(f"{out / DOCUMENT}: {len(different)} of {len(files)} files written anew")
    return HELD


def _different(out: Path, files: Mapping[str, str]) -> list[str]:
    """The files that are missing, have another text, or are left from another topology."""
    there = (path for path in (out / FOLDER).rglob("*") if path.is_file())
    stale = {path.relative_to(out).as_posix() for path in there} - files.keys()
    return [name for name, text in files.items() if _text(out / name) != text] + sorted(stale)


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _bring(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
