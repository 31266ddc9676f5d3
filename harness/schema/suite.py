"""The suite as a document writes it: its rows, with the names of shipped experiments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamquake.harness.campaign.suite.model import RowSource, SeriesPoint, SuiteSource
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.harness.schema.composed_types import either, list_of
from streamquake.harness.schema.named_parts import shipped_or_path
from streamquake.harness.schema.written_model import FieldDefinition, written_model


def suite_model() -> type[SuiteSource]:
    """The model of a suite's document."""
    experiment = shipped_or_path("experiment", EXPERIMENTS)
    point = written_model("SeriesPoint", SeriesPoint, {"experiment": (experiment, ...)})
    fields: dict[str, FieldDefinition] = {
        "experiment": (either(experiment, None), None),
        "control": (either(experiment, None), None),
        "series": (list_of(point), ()),
    }
    row = written_model("Row", RowSource, fields)
    return written_model(
        "Suite",
        SuiteSource,
        {"rows": (Annotated[list_of(row), Field(min_length=1)], ...)},
        description="A suite: rows, each an experiment, or a claim and the experiments that show "
        "it.",
    )
