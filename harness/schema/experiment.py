"""The experiment as a document writes it: names of shipped files, faults and checks in short
forms."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import StringConstraints

from streamquake.faults.fault import faults
from streamquake.faults.schedule.profiles import PROFILES, SINGLE
from streamquake.faults.schedule.random_schedule import Draw
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.document import ExperimentSource
from streamquake.harness.experiment.job_reader import SUFFIXES
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.schema.composed_types import either, list_of, mapping_of, one_of
from streamquake.harness.schema.named_parts import (
    described_names,
    fields_by_name,
    needs_parameters,
    shipped_or_path,
)
from streamquake.harness.schema.step import step_model
from streamquake.harness.schema.topology import base_field, topology_model
from streamquake.harness.schema.written_model import FieldDefinition, written_model
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.base_documents import KEY
from streamquake.topologies.docstrings import summary
from streamquake.topologies.model import Model, Name
from streamquake.topologies.named_files import JOBS, SHIPPED, shipped_names


def experiment_model() -> type[ExperimentSource]:
    """The model of an experiment's document."""
    job = _job_model()
    fields: dict[str, FieldDefinition] = {
        KEY: base_field("experiment", shipped_or_path("experiment", EXPERIMENTS)),
        "topology": (either(shipped_or_path("topology", SHIPPED), topology_model()), ...),
        "job": (either(job, None), None),
        "other_jobs": (mapping_of(Name, job), {}),
        "workload": (_workload_model(), ...),
        "faults": (list_of(step_model()), ()),
        "draw": (either(_draw_model(), None), None),
        "checks": (list_of(_check_type()), ()),
        "expect": (_expectation(), "held"),
    }
    return written_model(
        "Experiment",
        ExperimentSource,
        fields,
        description="An experiment: a topology, a job, a load, a schedule of faults, and checks.",
    )


def _job_model() -> type[Job]:
    programs = {
        kind: (either(one_of(shipped_names(JOBS, suffix)), str, None), None)
        for kind, suffix in SUFFIXES.items()
    }
    return written_model("Job", Job, programs)


def _workload_model() -> type[Model]:
    return written_model(
        "Workload",
        Model,
        fields_by_name(workloads),
        description="The load: one workload by its name, with its parameters.",
        groups=(workloads,),
    )


def _draw_model() -> type[Draw]:
    single = Annotated[str, StringConstraints(pattern=f"^{SINGLE}({'|'.join(faults)})$")]
    fields: dict[str, FieldDefinition] = {
        "profile": (either(one_of(PROFILES), single), ...),
        "without": (list_of(one_of(faults)), ()),
    }
    return written_model("Draw", Draw, fields)


def _check_type() -> Any:
    """A check by its name alone, if it needs no parameters, or with parameters."""
    alone = {name: summary(c) for name, c in checks.items() if not needs_parameters(c)}
    named = written_model(
        "NamedCheck", Model, fields_by_name(checks), description="A check with its parameters."
    )
    return either(described_names(alone), named)


def _expectation() -> Any:
    outcome = one_of(str(each) for each in Outcome)
    return either(outcome, mapping_of(one_of(checks), either(str, list_of(str))))
