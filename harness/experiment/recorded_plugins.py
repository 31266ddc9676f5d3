"""The plugins of an experiment, in the record of its run.

A record names them and what it used of each. It never loads one: a record may be written by another
person, and a plugin is a program.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamquake.cluster.engines.engine import engines
from streamquake.faults.fault import faults
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.reading.format import formats
from streamquake.topologies.model import Model
from streamquake.topologies.parsing import validate_data
from streamquake.topologies.plugins import Plugin, named, plugins
from streamquake.topologies.problems import BadInput
from streamquake.topologies.registry import Registry
from streamquake.topologies.yaml_document import Document, frozen

REGISTRIES: tuple[Registry[Any], ...] = (faults, checks, workloads, engines, formats, anomalies)
"""Those whose members an experiment can name."""
BY_KIND: Mapping[str, Registry[Any]] = {registry.kind: registry for registry in REGISTRIES}


class RecordedPlugin(Model):
    """One entry of `plugins` in run.json."""

    name: str
    version: str = ""
    """Empty for a single file."""
    digest: str = ""
    members: Mapping[str, tuple[str, ...]]
    """Kind -> the names of the members that the experiment uses."""

    @property
    def text(self) -> str:
        """Version and digest: equal for plugins whose code is equal."""
        return f"{self.version} {self.digest}".strip()


class _Recorded(Model):
    """The part of run.json that is read here."""

    plugins: tuple[RecordedPlugin, ...]


def plugins_of(experiment: Experiment) -> tuple[RecordedPlugin, ...]:
    """The plugins of which the experiment uses a member."""
    return tuple(
        RecordedPlugin(
            name=plugin.name,
            version=plugin.version,
            digest=plugin.digest,
            members={kind: tuple(sorted(names)) for kind, names in members.items()},
        )
        for plugin, members in _used(experiment).items()
    )


def replay_command(experiment: Experiment, run: Path) -> str:
    """The command that runs the plan of a run again, with the plugin files that it needs."""
    files = [plugin.file for plugin in _used(experiment) if not plugin.version]
    options = [word for file in files for word in ("--plugin", shlex.quote(file))]
    return " ".join(["streamquake", *options, "replay", str(run)])


def reject_missing_plugins(manifest: Mapping[str, Any], file: str) -> None:
    """Raise BadInput for each plugin that a run used and that is not loaded, and for a damaged
    record of them."""
    document = Document(file=file, data=frozen({"plugins": manifest.get("plugins", ())}))
    recorded, problems = validate_data(_Recorded, document.data, document, ())
    for number, plugin in enumerate(recorded.plugins if recorded else ()):
        if missing := [*_missing(plugin)]:
            problems.append(document.problem(("plugins", number), _message(plugin, missing)))
    if problems:
        raise BadInput(problems)


def changed_plugins(manifest: Mapping[str, Any], experiment: Experiment) -> Iterator[str]:
    """A message for each plugin of a recorded run that differs from the one that is loaded."""
    recorded = _Recorded.model_validate(frozen({"plugins": manifest.get("plugins", ())}))
    before = {plugin.name: plugin.text for plugin in recorded.plugins}
    for plugin in plugins_of(experiment):
        if (text := before.get(plugin.name, plugin.text)) != plugin.text:
            yield f"the plugin {plugin.name} is {plugin.text} now, and was {text} in the run"


def _used(experiment: Experiment) -> dict[Plugin, dict[str, set[str]]]:
    """Plugin -> kind -> names of its members that the experiment uses."""
    used: dict[Plugin, dict[str, set[str]]] = {}
    for registry, name in _members(experiment):
        member = registry.get(name)
        plugin = None if member is None else plugins.plugin_of(member)
        if plugin is not None:
            used.setdefault(plugin, {}).setdefault(registry.kind, set()).add(name)
    return dict(sorted(used.items(), key=lambda item: item[0].name))


def _members(experiment: Experiment) -> Iterator[tuple[Registry[Any], str]]:
    """The members that an experiment names."""
    yield from ((faults, step.fault) for step in experiment.faults)
    yield from ((checks, check.name) for check in experiment.checks)
    yield workloads, experiment.workload.name
    yield from ((engines, service.engine) for service in experiment.topology.services.values())
    for output in experiment.promise.outputs.values():
        yield from ((anomalies, name) for name in output.also)
        if output.format is not None:
            yield formats, output.format


def _missing(plugin: RecordedPlugin) -> Iterator[str]:
    for kind, names in plugin.members.items():
        yield from (f"{kind} {name}" for name in names if name not in BY_KIND.get(kind, ()))


def _message(plugin: RecordedPlugin, missing: list[str]) -> str:
    what = named(plugin.name, plugin.version, plugin.digest)
    remedy = "install it" if plugin.version else "name the file: streamquake --plugin FILE ..."
    return f"the run used {', '.join(missing)} of the plugin {what}, which is not loaded; {remedy}"
