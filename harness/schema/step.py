"""An entry of `faults` as a document writes it: a fault by name, its target and its trigger."""

from __future__ import annotations

from pydantic import Field

from streamquake.cluster.engines.engine import engines
from streamquake.faults.fault import faults
from streamquake.faults.schedule.metric_series import known_metrics
from streamquake.faults.schedule.step import KINDS, TriggerSpec
from streamquake.harness.experiment.document import StepSource
from streamquake.harness.schema.composed_types import either, one_of, pair_of
from streamquake.harness.schema.named_parts import fields_by_name
from streamquake.harness.schema.written_model import FieldDefinition, written_model
from streamquake.reports.record.event import Action
from streamquake.topologies.model import Model

TRIGGERS = ("when", "at_s")


def step_model() -> type[StepSource]:
    """The model of an entry of `faults`."""
    trigger = _trigger_model()
    by_engine = written_model(
        "TriggerOfEngine",
        Model,
        dict.fromkeys(engines, (trigger, None)),
        description="Engine -> trigger, where several engines may run the job.",
    )
    named = fields_by_name(faults)
    usual = sorted({fault.usual for fault in faults.values()})
    fields: dict[str, FieldDefinition] = {
        **named,
        "target": (str, Field(..., description="What it is injected into.", examples=usual)),
        "when": (either(trigger, by_engine), None),
    }
    return written_model(
        "Step",
        StepSource,
        fields,
        description="A fault by its name, its target, its trigger, and how long it lasts.",
        groups=(named, TRIGGERS),
    )


def _trigger_model() -> type[TriggerSpec]:
    event = one_of(str(action) for action in Action)
    fields: dict[str, FieldDefinition] = {
        "event": (event, None),
        "between": (pair_of(event), None),
        "metric": (one_of(known_metrics()), None),
    }
    return written_model("Trigger", TriggerSpec, fields, groups=(KINDS,))
