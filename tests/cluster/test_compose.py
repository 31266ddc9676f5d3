"""The compose files: the plans of the engines in the words of compose, and the committed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamquake.cluster.compose import DOCUMENT, FOLDER, compose_document, compose_files
from streamquake.cluster.images.recipes import recipe
from streamquake.topologies.loader import load_topology
from tests.echo import PORT, echo_topology

ROOT = Path(__file__).parents[2]


def _services(**client: object) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(compose_document(echo_topology(**client)))["services"]
    return services


@pytest.mark.usefixtures("echo_engine")
def test_every_node_is_a_service_named_by_its_host() -> None:
    services = _services()

    assert list(services) == ["echo-server-1", "echo-server-2", "echo-client-1"]
    client = services["echo-client-1"]
    assert (client["image"], client["command"]) == (recipe("toolbox").tag, ["sleep", "600"])
    assert client["hostname"] == "echo-client-1"


@pytest.mark.usefixtures("echo_engine")
def test_ports_are_on_loopback_at_their_own_number_or_the_next() -> None:
    files = compose_files(echo_topology())
    services = yaml.safe_load(files[DOCUMENT])["services"]

    published = {name: service["ports"] for name, service in services.items()}
    assert published == {
        "echo-server-1": [f"127.0.0.1:{PORT}:{PORT}"],
        "echo-server-2": [f"127.0.0.1:{PORT + 1}:{PORT}"],
        "echo-client-1": [f"127.0.0.1:{PORT + 2}:{PORT}"],
    }
    assert files[f"{FOLDER}/echo-server-2/reached-at"] == f"127.0.0.1:{PORT + 1}\n"


@pytest.mark.usefixtures("echo_engine")
def test_configuration_files_are_mounted_from_the_folder_beside() -> None:
    mount = f"./{FOLDER}/echo-client-1/reached-at:/etc/echo/reached-at:ro"

    assert _services()["echo-client-1"]["volumes"] == [mount]


@pytest.mark.usefixtures("echo_engine")
def test_a_dollar_is_not_a_variable_of_compose() -> None:
    services = _services(env={"PRICE": "5$"}, cpus=0.5)

    assert services["echo-client-1"]["environment"] == {"PRICE": "5$$"}
    assert services["echo-client-1"]["cpus"] == 0.5
    assert "$$SIG{CHLD}" in services["echo-server-1"]["command"][-1]


def test_the_committed_files_are_those_of_the_default_topology() -> None:
    expected = compose_files(load_topology("flink-kafka-hdfs"))
    there = [ROOT / DOCUMENT, *(path for path in (ROOT / FOLDER).rglob("*") if path.is_file())]
    committed = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in there}

    assert committed == expected, "write them again: streamquake compose flink-kafka-hdfs"
