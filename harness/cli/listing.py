"""`list`: everything that has a name, read from the files and classes themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamquake.faults.fault import faults
from streamquake.harness.campaign.suite.loader import SUITES
from streamquake.harness.cli.completion import words
from streamquake.harness.cli.options import json_option, out_option
from streamquake.harness.cli.output import echo
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.harness.experiment.workload import workloads
from streamquake.reports.record.run_folder import RunFolder, list_runs
from streamquake.reports.run.text import make_console
from streamquake.topologies.docstrings import summary
from streamquake.topologies.named_files import SHIPPED
from streamquake.topologies.parameters import parameters
from streamquake.topologies.parsing import value_text
from streamquake.topologies.plugins import plugins
from streamquake.topologies.registry import Registry, members_of
from streamquake.topologies.shipped_documents import shipped_descriptions

Rows = list[dict[str, Any]]


@click.command("list")
@click.argument(
    "kinds",
    nargs=-1,
    shell_complete=lambda context, _, incomplete: words(_sources(Path()), incomplete),
)
@json_option
@out_option
def list_command(kinds: Sequence[str], as_json: bool, out: Path) -> int:
    """List KINDS: topologies, experiments, suites, faults, checks, workloads, plugins, runs; all
    unless named."""
    sources = _sources(out)
    if unknown := [kind for kind in kinds if kind not in sources]:
        raise click.UsageError(f'no kind is called "{unknown[0]}"; known: {", ".join(sources)}')
    found = {kind: sources[kind]() for kind in kinds or sources}
    if as_json:
        echo(json.dumps(found, indent=2, default=str))
        return 0
    console = make_console()
    for kind, rows in found.items():
        _print(console, kind, rows)
    return 0


def _sources(out: Path) -> dict[str, Callable[[], Rows]]:
    return {
        "topologies": lambda: _documents(SHIPPED),
        "experiments": lambda: _documents(EXPERIMENTS),
        "suites": lambda: _documents(SUITES),
        "faults": lambda: _members(faults),
        "checks": lambda: _members(checks),
        "workloads": lambda: _members(workloads),
        "plugins": _plugins,
        "runs": lambda: [_run(folder) for folder in list_runs(out)],
    }


def _documents(folder: Path) -> Rows:
    return [
        {"name": name, "description": text} for name, text in shipped_descriptions(folder).items()
    ]


def _members(registry: Registry[Any]) -> Rows:
    return [
        {
            "name": name,
            "description": summary(registry[name]),
            "parameters": parameters(registry[name]),
            **_origin(registry[name]),
        }
        for name in registry
    ]


def _origin(member: type) -> dict[str, str]:
    """The plugin that a member is of; empty for one of Streamquake."""
    plugin = plugins.plugin_of(member)
    return {} if plugin is None else {"plugin": str(plugin)}


def _plugins() -> Rows:
    return [
        {
            "name": plugin.name,
            "description": f"{plugin}: {', '.join(members_of(plugin)) or 'no members'}",
            "version": plugin.version,
            "digest": plugin.digest,
            "file": plugin.file,
            "members": members_of(plugin),
        }
        for plugin in plugins.loaded()
    ]


def _run(folder: RunFolder) -> dict[str, Any]:
    """One run; a folder that cannot be read is still listed, with the reason."""
    row: dict[str, Any] = {"name": folder.run_id, "folder": str(folder.path)}
    try:
        manifest = folder.read_manifest()
        row |= {"experiment": manifest["experiment"]["name"], "seed": manifest["seed"]}
        if folder.results.exists():
            results = folder.read_results()
            return {**row, "outcome": str(results.outcome), "ended": results.ended}
    except (ValueError, KeyError, TypeError, OSError) as error:
        return {**row, "outcome": f"unreadable: {error}"}
    return {**row, "outcome": "by hand" if manifest.get("by_hand") else "not judged"}


def _print(console: Console, kind: str, rows: Rows) -> None:
    console.print(Text(kind, style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column()
    for row in rows:
        table.add_row(row["name"], Text(_message(row)))
    console.print(table if rows else Text("  none"))
    console.print()


def _message(row: dict[str, Any]) -> str:
    if "outcome" in row:
        seed = f", seed {row['seed']}" if "seed" in row else ""
        return f"{row.get('experiment', '')}{seed}: {row['outcome']}"
    origin = f" (plugin {row['plugin']})" if "plugin" in row else ""
    lines = [f"{row['description']}{origin}"]
    for parameter in row.get("parameters", ()):
        default = "" if parameter["default"] is None else f" = {value_text(parameter['default'])}"
        needed = " (needed)" if parameter["required"] else ""
        lines.append(f"  {parameter['name']}: {parameter['type']}{default}{needed}")
    return "\n".join(lines)
