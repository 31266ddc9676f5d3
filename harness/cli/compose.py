"""`compose`: a topology as a file of Docker Compose, written, printed or compared."""

from __future__ import annotations

from pathlib import Path

import click

from streamquake.cluster.compose import DOCUMENT, compose_document
from streamquake.harness.cli.completion import complete_topology
from streamquake.harness.cli.guard import HELD, no_verdict
from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.loader import topology_for_use

DEFAULT = "flink-kafka-hdfs"


@click.command("compose")
@click.argument("topology", default=DEFAULT, shell_complete=complete_topology)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder to write to; the current one unless given.",
)
@click.option("--print", "printed", is_flag=True, help=f"Print {DOCUMENT} and write nothing.")
@click.option(
    "--check", is_flag=True, help="Only compare with the existing file; exit 3 if it differs."
)
def compose_command(topology: str, out: Path, printed: bool, check: bool) -> int:
    """Write TOPOLOGY as docker-compose.yml, which needs no other file."""
    text = compose_document(topology_for_use(topology))
    if printed:
        echo(text, nl=False)
        return HELD
    path = out / DOCUMENT
    is_same = path.is_file() and path.read_text(encoding="utf-8") == text
    if check:
        message = f"{path}: differs from what `streamquake compose {topology}` writes"
        return HELD if is_same else no_verdict("file outdated", message)
    if not is_same:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    echo(f"{path}: {'unchanged' if is_same else 'written'}")
    return HELD
