"""Names in documents may contain only safe characters: no paths, quotes or line breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of,
    experiment_of_plan,
    load_experiment,
)
from streamquake.topologies.loader import topology_of
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document, frozen

HOSTILE = (
    "/etc/cron.d/x",
    "../../x",
    "..",
    ".",
    ".hidden",
    "a/b",
    "a\\b",
    "a\nb",
    "a\x00b",
    "a b",
    "",
    'a"b',
    "a'b",
    "a`b",
    "$(id)",
    "${run}",
    "a;b",
    "-rf",
    "a\x1b[31m",
    "\u202eabc",
    "ä",
    "x" * 65,
)


def _topology(**changes: Any) -> dict[str, Any]:
    services = {"kafka": {"engine": "kafka", "nodes": {"broker": 1, "controller": 1}}}
    return {"name": "t", "services": services, **changes}


def _problems(document: dict[str, Any]) -> list[str]:
    return [str(p) for p in topology_of(Document(file="t.yaml", data=frozen(document)))[1]]


@pytest.mark.parametrize("name", HOSTILE)
def test_parts_of_a_topology_with_hostile_names_are_rejected(name: str) -> None:
    link = {"from": "kafka/broker", "to": "kafka/controller", "port": 9093}
    nodes = {"engine": "kafka", "nodes": {name: 1}}

    assert _problems(_topology(name=name))
    assert _problems(_topology(links={name: link}))
    assert _problems(_topology(services={name: _topology()["services"]["kafka"]}))
    assert _problems(_topology(services={"kafka": nodes}))
    assert _problems(_topology(links={"control": link})) == []


def _experiment(**promise: Any) -> dict[str, Any]:
    plan = experiment_document(load_experiment("quickstart", seed=1))
    plan["job"] |= {"sql": "SELECT 1;\n", "pyspark": "1\n", "promise": promise}
    return plan


@pytest.mark.parametrize("name", [*HOSTILE, "input.topic"])
def test_an_output_with_a_hostile_name_is_rejected(name: str) -> None:
    with pytest.raises(BadInput, match=r"promise"):
        experiment_of_plan(_experiment(outputs={name: {"kafka": "t"}}), "run.json")


@pytest.mark.parametrize(
    "output",
    [
        {"kafka": "../t"},
        {"kafka": "t'); DROP TABLE x; --"},
        {"kafka": "t\n"},
        {"hdfs": "output"},
        {"hdfs": "/"},
        {"hdfs": "/../x"},
        {"hdfs": "/output/./x"},
        {"hdfs": "/output'; DROP TABLE x; --"},
        {"kafka": "t", "identity": ["k` OR true OR `k"]},
        {"kafka": "t", "compare": ["a\nb"]},
        {"kafka": "t", "order": "`"},
        {"kafka": "t", "map": {"a`b": "1"}},
    ],
)
def test_hostile_places_and_columns_of_an_output_are_rejected(output: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"job\.promise\.outputs\.totals"):
        experiment_of_plan(_experiment(outputs={"totals": output}), "run.json")


def test_the_message_lists_the_allowed_characters() -> None:
    problem, *_ = _problems(_topology(services={"a/b": _topology()["services"]["kafka"]}))

    assert problem.startswith("t.yaml: services.a/b: expected letters, digits and dashes (")
    assert problem.endswith('got "a/b"')
    (problem,) = _problems(_topology(name="x" * 3000))
    assert "expected at most 64 characters" in problem


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"topology": "kafka-only"}, "topology"),
        ({"topology": {"base": "kafka-only"}}, "topology.base"),
        ({"base": "quickstart"}, "base"),
        ({"job": {"sql": "copy.sql"}}, "job.sql"),
        ({"job": {"pyspark": "/etc/hosts"}}, "job.pyspark"),
        (
            {
                "job": {
                    "sql": "SELECT 1;\n",
                    "promise": {
                        "outputs": {"t": {"kafka": "t", "format": "avro", "schema": "/etc/hosts"}}
                    },
                }
            },
            "job.promise.outputs.t.schema",
        ),
        (
            {"job": {"pyspark": "import lib\n", "modules": {"lib": "/etc/hosts"}}},
            "job.modules.lib",
        ),
        (
            {
                "topology": {
                    "name": "t",
                    "services": {
                        "flink": {
                            "engine": "flink",
                            "nodes": {"taskmanager": {"rules": "/etc/hosts"}},
                        }
                    },
                }
            },
            "topology.services.flink.nodes.taskmanager.rules",
        ),
        (
            {
                "topology": {
                    "name": "t",
                    "services": {
                        "db": {
                            "engine": "container",
                            "image": "postgres:17",
                            "files": {"/etc/tables.sql": "/etc/hosts"},
                            "nodes": {"server": 1},
                        }
                    },
                }
            },
            "topology.services.db.files./etc/tables.sql",
        ),
    ],
)
def test_a_recorded_plan_cannot_name_a_file_of_this_machine(
    change: dict[str, Any], place: str
) -> None:
    plan = {**experiment_document(load_experiment("quickstart", seed=1)), **change}

    with pytest.raises(BadInput) as rejected:
        experiment_of_plan(plan, "run.json")

    assert place in [problem.path for problem in rejected.value.problems]


def test_a_plan_of_shipped_experiments_names_no_file(tmp_path: Path) -> None:
    for name in ("quickstart", "single-task-kill"):
        experiment = load_experiment(name, seed=1)
        plan = experiment_document(experiment)

        assert experiment_of_plan(plan, str(tmp_path / "run.json")) == experiment
        document = Document(file="x", data=frozen(plan))
        assert experiment_of(document, beside=tmp_path, seed=1) == experiment
