"""`--plugin FILE`: Python files that register faults, checks and other members for one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.topologies.plugins import plugins


def _load(_: click.Context, option: click.Parameter, files: Sequence[Path]) -> None:
    for file in files:
        plugins.load_file(file)


plugin_option = click.option(
    "--plugin",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    envvar="STREAMQUAKE_PLUGIN",
    show_envvar=True,
    expose_value=False,
    callback=_load,
    help="A Python file that registers faults, checks, ...; may be repeated. The variable has "
    "paths between colons.",
)
"""Its callback also runs while a shell completes, so that the names of members are completed."""
