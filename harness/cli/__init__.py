"""The command line: `streamquake COMMAND`.

A command returns its exit status: 0 held, 1 violated, 2 bad input, 3 undecided or failed to run,
130 interrupted. Errors that a user can cause are printed as lines, never as a traceback.
"""

from __future__ import annotations

import importlib
import sys

import click
from click.shell_completion import CompletionItem

from streamquake import __version__
from streamquake.harness.cli.guard import guarded
from streamquake.harness.cli.plugins import plugin_option
from streamquake.harness.cli.variables import with_variables
from streamquake.topologies.problems import did_you_mean

COMMANDS = {
    "init": ("init", "Write a first project: topology, job, experiment, tests, night."),
    "run": ("runs", "Run an experiment."),
    "suite": ("suite", "Run many experiments, or claims with their controls, as one table."),
    "compare": ("compare", "Run one experiment on several topologies, side by side."),
    "explore": ("explore", "Run drawn trials, guided to what was not tried."),
    "validate": ("validate", "Check topologies, experiments and suites; start nothing."),
    "schema": ("schema", "Print the JSON Schema of the documents, for editors."),
    "list": ("listing", "List topologies, experiments, suites, faults, checks, plugins, runs."),
    "up": ("interactive", "Start a cluster and leave it up, for manual experiments."),
    "status": ("interactive", "Show the cluster that is up."),
    "inject": ("interactive", "Inject a fault into the cluster that is up."),
    "heal": ("interactive", "Heal open faults, all or some."),
    "logs": ("interactive", "Print a node's log."),
    "down": ("interactive", "Remove the cluster that is up."),
    "reconcile": ("reconcile", "Compare any two data sets, record by record."),
    "check": ("records", "Judge a recorded run again."),
    "errors": ("errors", "Show the errors in the logs of runs, grouped."),
    "report": ("records", "Render a run's page again."),
    "replay": ("replay", "Run the plan of a recorded run again."),
    "shrink": ("shrink", "Find the smallest experiment that fails as a run did."),
    "results": ("results", "Show the recorded runs: rates and figures."),
    "coverage": ("coverage", "Show which faults met which phases of the protocol."),
    "prune": ("prune", "Remove the folders of old runs; their results stay."),
    "selftest": ("selftest", "Prove that reconciliation finds what is planted, exactly."),
    "sweep": ("machine", "Remove what dead runs left behind."),
    "doctor": ("machine", "Check whether this machine can run experiments."),
    "images": ("machine", "Build the container images."),
    "compose": ("compose", "Write a topology as docker-compose.yml."),
}
"""Command -> the module of this folder that holds it, and its line in the help. A module is
imported when its command is called, so that the program starts fast and a missing library disables
only the commands that need it."""


class CommandGroup(click.Group):
    """The commands of the table above."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, f"{name}_command")
        return with_variables(command, name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The commands by the table, so that no module is imported; else the program's options."""
        found = [
            CompletionItem(name, help=line)
            for name, (_, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, context, incomplete)]

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        unknown = name and not name.startswith("-") and name not in COMMANDS
        if unknown and not context.resilient_parsing:  # a completion shows no errors
            context.fail(f'no command is called "{name}"{did_you_mean(name, COMMANDS)}')
        return super().resolve_command(context, args)


@click.command(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@plugin_option
def program() -> None:
    """Chaos and failover tests for stream processors, judged from evidence.

    Begin with `streamquake doctor`, then `streamquake run quickstart`. `streamquake init` writes a
    project of your own.

    Any option may be an environment variable too: STREAMQUAKE_COMMAND_OPTION, such as
    STREAMQUAKE_RUN_OUT.
    """


def main() -> None:
    """The console script."""
    sys.exit(guarded(program, sys.argv[1:]))
