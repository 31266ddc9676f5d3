"""The suites of bugs compare an engine with a bug and one without, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from streamquake.harness.campaign.suite.loader import Row, load_suite
from streamquake.harness.experiment.loader import experiment_document, load_experiment

OWN = ("name", "description", "expect", "limits", "seed")
"""What a control states itself: a job that does not recover is not waited for."""


def without(keys: tuple[str, ...], document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


def without_release(flink: Mapping[str, Any]) -> dict[str, Any]:
    return without(("version", "connectors"), flink)


def without_rules(flink: Mapping[str, Any]) -> dict[str, Any]:
    nodes = {role: without(("rules",), group) for role, group in flink["nodes"].items()}
    return {**flink, "nodes": nodes}


BUG = {"zoo": without_release, "planted": without_rules}
"""Suite -> what is left of Flink's settings without what tells the two engines of a row apart."""
ROWS = [
    (row, BUG[name])
    for name in BUG
    for row in load_suite(name).rows
    if row.source.unavailable is None
]
IDS = [row.names[0] for row, _ in ROWS]


def compared(name: str, bugless: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """An experiment without what may differ."""
    document = experiment_document(load_experiment(name, seed=1))
    topology = without(("name", "description"), document["topology"])
    services = {**topology["services"], "flink": bugless(topology["services"]["flink"])}
    return {**without(OWN, document), "topology": {**topology, "services": services}}


@pytest.mark.parametrize(("row", "bugless"), ROWS, ids=IDS)
def test_a_bug_and_its_control_differ_in_the_engine_alone(
    row: Row, bugless: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> None:
    bug, control = row.names
    assert compared(bug, bugless) == compared(control, bugless)
    engines = [load_experiment(name, seed=1).topology.services["flink"] for name in row.names]
    assert engines[0] != engines[1]


@pytest.mark.parametrize("row", [row for row, _ in ROWS], ids=IDS)
def test_a_bug_has_to_be_found_by_name_and_its_control_held(row: Row) -> None:
    bug, control = (load_experiment(name, seed=1).expect for name in row.names)
    assert not isinstance(bug, str)
    assert str(control) == "held"


@pytest.mark.parametrize("name", BUG)
def test_a_suite_has_rows_that_run(name: str) -> None:
    assert sum(row.source.unavailable is None for row in load_suite(name).rows) >= 5
