"""Topologies by name and by path, and the problems of their names and links."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.topologies.loader import load_topology, topology_of
from streamquake.topologies.named_files import JOBS, SHIPPED, find_file, shipped_file, shipped_names
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import parse_document


def problems_of(text: str) -> list[str]:
    return [str(problem) for problem in topology_of(parse_document(text, "t.yaml"))[1]]


@pytest.mark.parametrize("name", shipped_names(SHIPPED, ".yaml"))
def test_every_shipped_topology_loads_by_name(name: str) -> None:
    assert load_topology(name).name == name


def test_the_problem_of_an_unknown_name_has_the_nearest_name() -> None:
    with pytest.raises(BadInput, match='did you mean "flink-kafka-hdfs"'):
        load_topology("flink-kafka-hfds")


def test_a_file_is_found_beside_the_one_that_names_it_and_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "name: mine\nservices: {kafka: {engine: kafka, nodes: {broker: 1}}}\n"
    for folder in ("beside", "here"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path / "here")

    assert load_topology("beside.yaml", tmp_path / "beside").name == "mine"
    assert load_topology("here.yaml", tmp_path / "beside").name == "mine"
    assert load_topology(str(tmp_path / "beside" / "beside.yaml")).name == "mine"
    assert load_topology("beside", tmp_path / "beside").name == "mine"
    assert load_topology("here", tmp_path / "beside").name == "mine"
    (tmp_path / "here" / "beside").write_text("not that one")
    assert load_topology("beside", tmp_path / "beside").name == "mine"
    with pytest.raises(BadInput, match='no topology is called "there"'):
        load_topology("there", tmp_path / "beside")


def test_the_name_of_a_shipped_file_needs_no_suffix() -> None:
    found = [
        find_file("topology", name, shipped=SHIPPED, suffix=".yaml", beside=None)
        for name in ("kafka-only", "kafka-only.yaml")
    ]

    assert found == [SHIPPED / "kafka-only.yaml"] * 2


def test_folders_are_not_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    for path in ("b.yaml", "deep/deeper/a.yaml", "deep/c.txt"):
        (tmp_path / path).touch()

    assert shipped_names(tmp_path, ".yaml") == ("a", "b")
    assert shipped_file("a", tmp_path, ".yaml") == tmp_path / "deep" / "deeper" / "a.yaml"
    assert shipped_file("deep/deeper/a", tmp_path, ".yaml") is None


def test_imported_modules_are_not_jobs() -> None:
    jobs = shipped_names(JOBS, ".py")

    assert "copy" in jobs
    assert "kafka_sink" not in jobs


@pytest.mark.parametrize("name", ["", "loader.py", "..", "jobs"])
def test_other_files_of_the_package_are_not_topologies(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadInput, match="no topology is called"):
        load_topology(name)


def test_unknown_roles_of_a_link_are_reported_at_each_end() -> None:
    found = problems_of(
        "name: x\n"
        "services: {kafka: {engine: kafka, nodes: {broker: 1}}}\n"
        "links:\n"
        "  a: {from: kafka/brokr, to: kafka/broker, port: 70000}\n"
        "  b: {from: kafka/broker, to: flink/taskmanager, port: data}\n"
    )

    assert found == [
        't.yaml:4: links.a.from: no role is called "kafka/brokr"; did you mean "kafka/broker"? '
        "known: kafka/broker",
        "t.yaml:4: links.a.port: expected a port from 1 to 65535, got 70000",
        't.yaml:5: links.b.to: no role is called "flink/taskmanager"; known: kafka/broker',
    ]


def test_a_link_to_a_role_with_a_problem_is_not_reported() -> None:
    found = problems_of(
        "name: x\n"
        "services: {kafka: {nodes: {broker: 1}}, flink: {engine: flink, nodes: {taskmanager: 1}}}\n"
        "links: {a: {from: flink/taskmanager, to: kafka/broker, port: 1}}\n"
    )

    assert found == ["t.yaml:2: services.kafka: expected the key `engine`, which is missing"]


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ("{}", "services: expected at least one service, got none"),
        ("{kafka: {engine: kafka, nodes: {}}}", "expected at least one role, got none"),
        ("{Kafka: {engine: kafka, nodes: {broker: 1}}}", '"Kafka" becomes part of host names'),
        ("{kafka: {engine: kafka, nodes: {the_broker: 1}}}", '"the_broker" becomes part of'),
        (f"{{{'k' * 60}: {{engine: kafka, nodes: {{broker: 1}}}}}}", "is too long"),
    ],
)
def test_names_that_cannot_be_host_names_are_problems(services: str, message: str) -> None:
    (problem,) = problems_of(f"name: x\nservices: {services}\n")

    assert message in problem
