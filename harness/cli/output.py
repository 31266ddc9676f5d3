"""Printing lines on the terminal, with control characters escaped."""

from __future__ import annotations

import click

from streamquake.reports.render.terminal import escaped


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text to the standard output or error; control characters are escaped."""
    click.echo(escaped(text), err=err, nl=nl)
