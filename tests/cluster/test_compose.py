"""The generated Docker Compose file, and the committed one."""

from __future__ import annotations

from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamquake.cluster.compose import DOCUMENT, compose_document
from streamquake.cluster.images.recipes import recipe
from streamquake.topologies.loader import load_topology
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import SHIPPED, shipped_names
from tests.echo import PORT, Echo, echo_topology

ROOT = Path(__file__).parents[2]
DEPLOYED = [
    topology
    for topology in map(load_topology, shipped_names(SHIPPED, ".yaml"))
    if all(service.endpoint is None for service in topology.services.values())
]
WITHOUT_HEALTH_CHECK = {"spark-driver-1"}
"""The driver answers nothing before it has a program."""


def _document(**client: object) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(compose_document(echo_topology(**client)))
    return document


@pytest.mark.usefixtures("echo_engine")
def test_every_node_is_a_service_named_by_its_host() -> None:
    document = _document()

    assert document["name"] == "streamquake-echo"
    assert list(document["services"]) == ["echo-server-1", "echo-server-2", "echo-client-1"]
    client = document["services"]["echo-client-1"]
    assert (client["image"], client["command"]) == (recipe("toolbox").tag, ["sleep", "600"])
    assert client["hostname"] == "echo-client-1"


@pytest.mark.usefixtures("echo_engine")
def test_ports_are_on_loopback_at_their_own_number_or_the_next() -> None:
    document = _document()

    published = {name: service["ports"] for name, service in document["services"].items()}
    assert published == {
        "echo-server-1": [f"127.0.0.1:{PORT}:{PORT}"],
        "echo-server-2": [f"127.0.0.1:{PORT + 1}:{PORT}"],
        "echo-client-1": [f"127.0.0.1:{PORT + 2}:{PORT}"],
    }
    content = document["configs"]["echo-server-2-reached-at"]["content"]
    assert content == f"127.0.0.1:{PORT + 1}\n"


@pytest.mark.usefixtures("echo_engine")
def test_configuration_files_are_in_the_document() -> None:
    document = _document()

    mount = {"source": "echo-client-1-reached-at", "target": "/etc/echo/reached-at"}
    assert document["services"]["echo-client-1"]["configs"] == [mount]
    assert "volumes" not in document["services"]["echo-client-1"]


@pytest.mark.usefixtures("echo_engine")
def test_two_configuration_files_of_one_name_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, same = Echo.plan, {"/etc/echo/names": "a", "/var/echo/names": "b"}
    monkeypatch.setattr(Echo, "plan", lambda *arguments: replace(plan(*arguments), files=same))

    document = _document()

    assert document["services"]["echo-client-1"]["configs"] == [
        {"source": "echo-client-1-1-names", "target": "/etc/echo/names"},
        {"source": "echo-client-1-2-names", "target": "/var/echo/names"},
    ]
    assert document["configs"]["echo-client-1-2-names"]["content"] == "b"


@pytest.mark.usefixtures("echo_engine")
def test_a_dollar_in_a_setting_is_escaped() -> None:
    services = _document(env={"PRICE": "5$"}, cpus=0.5)["services"]

    assert services["echo-client-1"]["environment"] == {"PRICE": "5$$"}
    assert services["echo-client-1"]["cpus"] == 0.5
    assert "$$SIG{CHLD}" in services["echo-server-1"]["command"][-1]


def test_a_dollar_in_a_configuration_file_is_escaped() -> None:
    broker = {"engine": "kafka", "nodes": {"broker": 1}, "config": {"a.b": "${c}"}}
    topology = Topology.model_validate({"name": "t", "services": {"k": broker}})

    configs = yaml.safe_load(compose_document(topology))["configs"]
    assert "a.b=$${c}\n" in configs["k-broker-1-server.properties"]["content"]


def test_only_built_images_are_never_pulled() -> None:
    for image, policy in (None, "never"), ("example/kafka:9", None):
        service = {"engine": "kafka", "image": image, "nodes": {"broker": 1}}
        topology = Topology.model_validate({"name": "t", "services": {"k": service}})
        services = yaml.safe_load(compose_document(topology))["services"]
        assert services["k-broker-1"].get("pull_policy") == policy


@pytest.mark.usefixtures("echo_engine")
def test_other_roles_wait_for_the_first_role() -> None:
    services = _document()["services"]

    started = {"condition": "service_started"}
    assert "depends_on" not in services["echo-server-1"]
    assert services["echo-client-1"]["depends_on"] == {
        "echo-server-1": started,
        "echo-server-2": started,
    }


def test_flink_waits_for_the_health_of_the_services_it_uses() -> None:
    services = yaml.safe_load(compose_document(load_topology("flink-ha")))["services"]

    assert services["flink-jobmanager-2"]["depends_on"] == {
        name: {"condition": "service_healthy"}
        for name in ("zookeeper-server-1", "kafka-broker-1", "hdfs-namenode-1", "hdfs-datanode-1")
    }
    assert set(services["flink-taskmanager-1"]["depends_on"]) == {
        "flink-jobmanager-1",
        "flink-jobmanager-2",
    }


@pytest.mark.parametrize("topology", DEPLOYED, ids=lambda topology: topology.name)
def test_every_service_has_limits_and_a_health_check_and_waits_have_no_cycle(
    topology: Topology,
) -> None:
    document = yaml.safe_load(compose_document(topology))
    services = document["services"]

    assert {name for name, s in services.items() if "healthcheck" not in s} <= WITHOUT_HEALTH_CHECK
    assert all(s["mem_limit"] == s["memswap_limit"] for s in services.values())
    waits = {name: set(s.get("depends_on", ())) for name, s in services.items()}
    assert set(TopologicalSorter(waits).static_order()) == set(services)
    used = {config["source"] for s in services.values() for config in s.get("configs", ())}
    assert used == set(document["configs"])


def test_the_committed_file_is_that_of_the_default_topology() -> None:
    expected = compose_document(load_topology("flink-kafka-hdfs"))
    committed = (ROOT / DOCUMENT).read_text(encoding="utf-8")

    assert committed == expected, "generate it again: streamquake compose flink-kafka-hdfs"


def test_a_container_with_the_last_port_is_published_at_a_free_one() -> None:
    service = {"engine": "container", "image": "app:1", "ports": {"web": 65535}}
    services = {"app": {**service, "volumes": ["/data"], "nodes": {"server": 2}}}
    topology = Topology.model_validate({"name": "last", "services": services})

    made = yaml.safe_load(compose_document(topology))["services"]

    assert made["app-server-1"]["ports"] == ["127.0.0.1:65535:65535"]
    assert made["app-server-2"]["ports"] == ["127.0.0.1:1024:65535"]
    assert made["app-server-1"]["volumes"] == ["/data"]
