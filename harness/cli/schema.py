"""`schema`: the JSON Schema of the documents, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from streamquake.harness.cli.guard import HELD
from streamquake.harness.cli.options import new_file_option
from streamquake.harness.cli.output import echo
from streamquake.harness.schema.schemas import MODELS, document_schema
from streamquake.reports.record import atomic_files


@click.command("schema")
@click.argument("kind", type=click.Choice([*MODELS]), required=False)
@new_file_option("--out", "file", "Write the schema to FILE instead of printing it.")
def schema_command(kind: str | None, file: Path | None) -> int:
    """Print the JSON Schema of a topology, an experiment or a suite, for editors.

    With the YAML language server (VS Code, Neovim, ...) a document is validated and completed while
    it is written if its first line names the schema's file:

    \b
        # yaml-language-server: $schema=experiment.schema.json

    Without an argument: how to write each of them.
    """
    if kind is None:
        if file is not None:
            raise click.UsageError(f"--out needs the kind of document: {', '.join(MODELS)}")
        for name in MODELS:
            echo(f"streamquake schema {name} --out {name}.schema.json")
        return HELD
    text = json.dumps(document_schema(kind), indent=2) + "\n"
    if file is None:
        echo(text, nl=False)
    else:
        atomic_files.write_text(file, text)
        echo(f"{file}: written")
    return HELD
