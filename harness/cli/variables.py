"""Options as environment variables: STREAMQUAKE_COMMAND_OPTION, such as STREAMQUAKE_RUN_OUT."""

from __future__ import annotations

import click
from click.core import ParameterSource

PREFIX = "STREAMQUAKE"


def with_variables(command: click.Command, *names: str) -> click.Command:
    """The command of these names with an environment variable for each of its options.

    Click's `auto_envvar_prefix` would name them by the parameters of the functions, such as `sets`
    for `--set`, and let STREAMQUAKE_VERSION print the version instead of running a command.
    """
    for option in command.params:
        if isinstance(option, click.Option):
            words = "_".join((PREFIX, *names, max(option.opts, key=len).lstrip("-")))
            option.envvar = words.replace("-", "_").upper()
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_variables(below, *names, name)
    return command


def variable_of(error: click.ClickException) -> str | None:
    """The environment variable with the value that an error is about; None where it is from the
    command line."""
    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return None
    source = error.ctx.get_parameter_source(error.param.name or "")
    return str(error.param.envvar) if source == ParameterSource.ENVIRONMENT else None
