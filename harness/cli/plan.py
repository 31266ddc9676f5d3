"""The plan of an experiment as text: everything that `run` would do, in its order."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.check import ALWAYS_ON
from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.reports.record.secret_settings import hide_secret_settings, hide_secrets
from streamquake.reports.run.text import make_console
from streamquake.topologies.model import NodeGroup, Topology
from streamquake.topologies.rule_scripts import rule_names

PROGRAMS = {"sql": "SQL", "pyspark": "PySpark"}


def print_plan(experiment: Experiment, console: Console | None = None) -> None:
    """Print the plan; nothing is started."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    for name, text in _lines(experiment):
        table.add_row(name, Text(text))
    console = console or make_console()
    console.print(table)
    if experiment.faults:
        console.print(Text(f"\n{schedule_yaml(experiment.faults)}"), soft_wrap=True)


def schedule_yaml(steps: Sequence[Step]) -> str:
    """The schedule in the YAML of experiments, so that a drawn one can be run again too."""
    lines = [
        yaml.safe_dump(
            json.loads(json.dumps(hide_secrets(step.document()))),
            default_flow_style=True,
            sort_keys=False,
            width=math.inf,
        ).strip()
        for step in steps
    ]
    return "\n".join(["faults:", *(f"  - {line}" for line in lines)])


def step_line(step: Step) -> str:
    """A step of a schedule: what, where, when, and for how long."""
    until = f"for {step.for_s:g} s" if step.for_s is not None else "until the end"
    return (
        f"{step.fault}{_params(hide_secrets(step.params))} on {step.target}, {step.when}, {until}"
    )


def _lines(experiment: Experiment) -> list[tuple[str, str]]:
    faults = [step_line(step) for step in experiment.faults]
    document = experiment_document(experiment)
    workload, checks = (
        [f"{name}{_params(given)}" for part in parts for name, given in part.items()]
        for parts in ([document["workload"]], document.get("checks", ()))
    )
    limits = (f"{name} {value:g}" for name, value in experiment.limits.model_dump().items())
    return [
        ("experiment", experiment.name),
        *([("", experiment.description)] if experiment.description else []),
        ("seed", str(experiment.seed)),
        *_topology(experiment.topology),
        *((f"job {name}", _job(other)) for name, other in experiment.other_jobs.items()),
        ("job", "none" if experiment.job is None else _job(experiment.job)),
        *_listed("workload", workload),
        *_listed("faults", faults),
        *_listed("checks", [*checks, *ALWAYS_ON]),
        ("limits", ", ".join(limits)),
        ("expected", str(experiment.expected)),
    ]


def _topology(topology: Topology) -> list[tuple[str, str]]:
    nodes = []
    for name, service in topology.services.items():
        version = f" {service.version}" if service.version else ""
        roles = (
            f"{group.count} {role}{_params(_settings_of_group(group))}"
            for role, group in service.nodes.items()
        )
        deployed = (
            ", ".join(roles) if service.endpoint is None else f"already runs at {service.endpoint}"
        )
        nodes.append(f"{name} ({service.engine}{version}): {deployed}")
        if service.config:
            nodes.append(f"    {_settings(service.config)}")
    links = [
        f"{name}: {link.from_} to {link.to}, port {link.port}"
        for name, link in topology.links.items()
    ]
    return [("topology", topology.name), *_listed("nodes", nodes), *_listed("links", links)]


def _job(job: Job) -> str:
    outputs = ", ".join(job.promise.outputs) or "none declared"
    if job.existing is not None:
        group, name = job.existing.group, job.existing.job
        read = "" if group is None else f", reads as the group {group}"
        called = "" if name is None else f", called {name}"
        return f"one that already runs{called}{read}; outputs: {outputs}"
    program = "; ".join(_program(kind, text) for kind, text in job.programs().items())
    if with_it := [*(Path(jar).name for jar in job.jars), *(f"{name}.py" for name in job.modules)]:
        program += f"\nwith {', '.join(with_it)}"
    config = _settings(job.config)
    sink: str = job.sink
    if "transaction_timeout_s" in job.model_fields_set:
        sink += f" with transactions of {job.transaction_timeout_s} s at most"
    if job.reads is not None:
        program += f"\nreads {', '.join(job.reads) or 'no topic'}"
    return f"{program}\nparallelism {job.parallelism}, sink {sink}, outputs: {outputs}" + (
        f"\n{config}" if config else ""
    )


def _settings(config: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in hide_secret_settings(config).items())


def _program(kind: str, text: str) -> str:
    if kind == "jar":
        return f"jar {text}"
    head = text.strip().splitlines()
    return f"{PROGRAMS[kind]}: {head[0].lstrip('-# ') if head else ''}"


def _listed(name: str, lines: list[str]) -> list[tuple[str, str]]:
    return [(name if n == 0 else "", line) for n, line in enumerate(lines or ["none"])]


def _settings_of_group(group: NodeGroup) -> dict[str, Any]:
    beyond = group.model_dump(exclude={"count", "rules"}, exclude_defaults=True)
    if group.env:
        beyond["env"] = hide_secret_settings(group.env)
    if group.rules is not None:
        beyond["rules"] = ", ".join(f'"{name}"' for name in rule_names("\n".join(group.rules)))
    return beyond


def _params(params: Mapping[str, Any]) -> str:
    text = ", ".join(f"{key} {_short(value)}" for key, value in params.items())
    return f" ({text})" if text else ""


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    lines = str(value).count("\n")
    return f"({lines} lines)" if isinstance(value, str) and lines else str(value)
