"""The shipped reference pages match the code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from streamquake.cluster.engines.engine import engines
from streamquake.faults.fault import faults
from streamquake.faults.schedule.random_schedule import Draw
from streamquake.faults.schedule.step import TriggerSpec
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.document import ExperimentSource, StepSource
from streamquake.harness.experiment.model import ExistingJob, Job, Limits
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reference.markdown import COMMAND, attribute_docs, field_list
from streamquake.harness.reference.pages import PAGES
from streamquake.harness.reference.settings import TOPOLOGIES
from streamquake.reports.record.event import Action
from streamquake.topologies.model import HttpPage, Link, Model, NodeGroup, Ready, Service, Topology

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_shipped_page_is_the_one_generated_from_the_code(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), (
        f"generate it again: {COMMAND}"
    )


@pytest.mark.parametrize(
    ("name", "members"), [("faults.md", faults), ("checks.md", checks), ("events.md", Action)]
)
def test_every_member_has_its_section(name: str, members: object) -> None:
    assert [line for line in PAGES[name]().splitlines() if line.startswith("## ")] == [
        f"## {member}"
        for member in members  # type: ignore[attr-defined]
    ]


def test_every_engine_with_settings_of_its_own_shows_them() -> None:
    assert set(TOPOLOGIES) == set(engines) - {"container"}


def test_settings_are_listed_with_the_defaults_of_the_release() -> None:
    assert "| `heartbeat.timeout` | `10 s` | `PT50S` |" in PAGES["settings.md"]()


@pytest.mark.parametrize(
    "model",
    [
        *(Topology, Service, Ready, HttpPage, NodeGroup, Link),
        *(
            ExperimentSource,
            StepSource,
            TriggerSpec,
            Draw,
            Job,
            ExistingJob,
            JobPromise,
            Output,
            Limits,
        ),
    ],
)
def test_every_key_of_a_document_is_described(model: type[Model]) -> None:
    assert {*model.model_fields} <= {*attribute_docs(model)}


class Parent(Model):
    inherited: int = 1
    """An inherited field."""


class Child(Parent):
    """A model."""

    needed: Annotated[int, Field(ge=1)]
    """Must be
    given."""
    undescribed: str | None = None
    part: Parent = Parent()
    """The last."""


def test_docstrings_of_attributes_include_inherited_ones() -> None:
    assert attribute_docs(Child) == {
        "inherited": "An inherited field.",
        "needed": "Must be\ngiven.",
        "part": "The last.",
    }


def test_a_field_has_type_default_and_docstring() -> None:
    assert field_list(Child).splitlines() == [
        "- `inherited`: int, 1 unless given. An inherited field.",
        "- `needed`: int, needed. Must be given.",
        "- `undescribed`: str",
        "- `part`: {inherited}. The last.",
    ]
