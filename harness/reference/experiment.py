"""The language of experiments: the keys of a document, part by part."""

from __future__ import annotations

import inspect

from streamquake.faults.schedule import metric_series, target
from streamquake.faults.schedule.profiles import PROFILES, SINGLE
from streamquake.faults.schedule.random_schedule import Draw
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.experiment import outputs
from streamquake.harness.experiment.document import ExperimentSource, StepSource
from streamquake.harness.experiment.model import ExistingJob, Job, Limits
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.reference.markdown import GENERATED, section
from streamquake.harness.workloads.template import generators
from streamquake.harness.workloads.template.fields import FieldTemplate, Several
from streamquake.topologies.model import Model

HEAD = f"""# Experiments

An experiment is a YAML file: a topology, a job, a load, a schedule of faults, and checks.

    name: mine
    topology: flink-kafka-hdfs
    job: {{sql: keyed-totals.sql, parallelism: 4}}
    workload: {{numbered: {{records: 120000, rate_per_s: 2000, keys: 128}}}}
    faults:
      - {{kill: {{}}, target: one of flink/taskmanager, at_s: 20, for_s: 5}}
    checks: [exactly_once, {{recovery: {{within_s: 60}}}}]

`base: NAME` takes every key from another experiment that the document does not give itself.
Mappings are merged key by key; a list or a value replaces that of the base, and `null` takes an
optional key away. Unknown keys are rejected, with the nearest known one. `streamquake validate
FILE` reads a document and starts nothing.

{GENERATED}
"""


def page() -> str:
    """The whole page."""
    profiles = ", ".join(f"`{name}`" for name in (*PROFILES, f"{SINGLE}FAULT"))
    parts = [
        section("An experiment", ExperimentSource),
        section("`job`", Job),
        section("`job.existing`", ExistingJob),
        section("`job.promise`", JobPromise),
        section("An output of the promise", Output, inspect.getdoc(outputs) or ""),
        *(section(f"`workload.{name}`", workloads[name]) for name in workloads),
        section("A field of `workload.template`", FieldTemplate),
        *(section(f"A field's `{name}`", kind) for name, kind in FIELD_KINDS.items()),
        section("An entry of `faults`", StepSource, STEP),
        f"## `target`\n\n{inspect.getdoc(target)}\n",
        section("`when`", TriggerSpec),
        _metrics(),
        section("`draw`", Draw, f"Profiles: {profiles}."),
        section("`limits`", Limits),
    ]
    return HEAD + "".join(f"\n{part}" for part in parts)


FIELD_KINDS: dict[str, type[Model]] = {
    "sequence": generators.Sequence,
    "number_of": generators.NumberOf,
    "choice": generators.Choice,
    "zipf": generators.Zipf,
    "integer": generators.Integer,
    "fraction": generators.Fraction,
    "timestamp": generators.Timestamp,
    "text": generators.Text,
    "list": Several,
}
STEP = """One further key names the fault and has its parameters: `kill: {}`. They are in
[faults.md](faults.md). `at_s: 20` is short for `when: {after_s: 20}`."""


def _metrics() -> str:
    lines = [f"- `{name}`: {text}" for name, text in metric_series.SERIES.items()]
    lines += [
        f"- `{name}`: {series} as a share of time, from 0 to 1"
        for name, (series, _) in metric_series.RATIOS.items()
    ]
    return "\n".join(["## `when.metric`", "", *lines, ""])
