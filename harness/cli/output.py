"""Lines that commands print."""

from __future__ import annotations

import click

from streamquake.reports.render.terminal import escaped


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text to the standard output or error; what a terminal would obey is written out."""
    click.echo(escaped(text), err=err, nl=nl)
