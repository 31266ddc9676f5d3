"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    show_envvar=True,
    help="Folder of the run folders.",
)
master_option = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    show_envvar=True,
    metavar="URL",
    help="Spark master that reconciles.",
)
conf_option = click.option(
    "--conf",
    "confs",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda context, option, given: _settings(given),
    help="A setting of Spark, such as spark.executor.memory=512m; may be repeated.",
)
plain_option = click.option("--plain", is_flag=True, help="Plain lines instead of a live panel.")
keep_option = click.option("--keep", is_flag=True, help="Leave the cluster up, as `up` does.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
run_option = click.option(
    "--run", "run_id", metavar="ID", help="Which kept cluster; the latest unless given."
)


def new_file_option(name: str, parameter: str, help_text: str) -> Callable[[Any], Any]:
    """An option with a FILE to write; a missing folder is reported before the work starts."""
    return click.option(
        name,
        parameter,
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        callback=_in_existing_folder,
        help=help_text,
    )


def json_file_option(help_text: str) -> Callable[[Any], Any]:
    """`--json FILE`."""
    return new_file_option("--json", "json_file", help_text)


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for name, equals, value in pairs:
        if not (name.startswith("spark.") and equals and value):
            message = f'expected spark.NAME=VALUE, got "{name}{equals}{value}"'
            raise click.BadParameter(message, param_hint="--conf")
    return {name: value for name, _, value in pairs}


def _in_existing_folder(
    _: click.Context, option: click.Parameter, file: Path | None
) -> Path | None:
    if file is not None and not file.absolute().parent.is_dir():
        raise click.BadParameter(
            f"no such folder: {file.parent}; create it, or name another file", param=option
        )
    return file
