"""The suite of known bugs compares releases, and nothing else."""

from __future__ import annotations

from typing import Any

from streamquake.harness.campaign.suite.loader import load_suite
from streamquake.harness.experiment.loader import experiment_document, load_experiment

RELEASE = ("version", "connectors")
OWN = ("name", "description", "expect", "limits", "seed")
"""What a control states itself: a job that does not recover is not waited for."""


def without_release(name: str) -> dict[str, Any]:
    """An experiment without what tells its two releases apart."""
    document = experiment_document(load_experiment(name, seed=1))
    topology = {key: value for key, value in document["topology"].items() if key != "name"}
    flink = topology["services"]["flink"]
    topology["services"] = {
        **topology["services"],
        "flink": {key: value for key, value in flink.items() if key not in RELEASE},
    }
    kept = {key: value for key, value in document.items() if key not in OWN}
    return {**kept, "topology": topology}


def test_a_bug_and_its_control_differ_in_the_release_alone() -> None:
    rows = [row for row in load_suite("zoo").rows if row.source.unavailable is None]
    assert len(rows) >= 2
    for row in rows:
        bug, control = row.names
        assert without_release(bug) == without_release(control)
        releases = [load_experiment(name, seed=1).topology.services["flink"] for name in row.names]
        assert releases[0] != releases[1]


def test_a_bug_has_to_be_found_by_name_and_its_control_held() -> None:
    for row in load_suite("zoo").rows:
        if row.source.unavailable is None:
            bug, control = (load_experiment(name, seed=1).expect for name in row.names)
            assert not isinstance(bug, str), row.names
            assert str(control) == "held"
