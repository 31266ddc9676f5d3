"""Printing lines on the terminal, with control characters escaped."""

from __future__ import annotations

from collections.abc import Callable

import click

from streamquake.reports.render.terminal import escaped


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text to the standard output or error; control characters are escaped."""
    click.echo(escaped(text), err=err, nl=nl)


def progress_printer(*, as_json: bool) -> Callable[[str], None]:
    """A function that prints a line of progress. With JSON the standard output holds only the
    document, so the lines go to the standard error."""
    return lambda line: echo(line, err=as_json)
