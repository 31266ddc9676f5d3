"""`TopologyContainer` on real containers, beside testcontainers and another client of Toxiproxy."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from toxiproxy import Toxiproxy

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.interactive.topology_container import TopologyContainer
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.model import Topology
from tests.echo import ASK_FIRST_SERVER, echo_topology
from tests.pace import at_pace

RECORDS = 2000


def produce(brokers: str, topic: str, sent: Path) -> None:
    """Send records one after the other, and write each that was acknowledged into a file."""
    producer = KafkaProducer(
        bootstrap_servers=brokers.split(","),
        acks="all",
        retries=100,
        delivery_timeout_ms=120_000,
        max_block_ms=120_000,
        value_serializer=lambda value: json.dumps(value).encode(),
    )
    pending = [
        (number, producer.send(topic, {"id": number, "square": number * number}))
        for number in range(RECORDS)
    ]
    with sent.open("w", encoding="utf-8") as file:
        for number, result in pending:
            result.get(timeout=120)
            file.write(json.dumps({"id": number, "square": number * number}) + "\n")
    producer.close()


@pytest.mark.nightly
@pytest.mark.container
@pytest.mark.spark
def test_a_topic_keeps_what_was_acknowledged_while_a_broker_is_dead(
    docker_runtime: DockerRuntime, tmp_path: Path
) -> None:
    sent = tmp_path / "sent.jsonl"
    with TopologyContainer("kafka-three", out=tmp_path, runtime=docker_runtime, seed=1) as kafka:
        brokers = kafka.get_bootstrap_server()
        assert len(brokers.split(",")) == 3
        admin = KafkaAdminClient(bootstrap_servers=brokers.split(","))
        admin.create_topics([NewTopic("orders", num_partitions=3, replication_factor=3)])
        admin.close()

        with kafka.fault("kill", "one of kafka/broker", limit_s=at_pace(30)) as killed:
            produce(brokers, "orders", sent)
        assert killed.result.evidence
        kafka.wait_until_ready(limit_s=at_pace(120))

        topic = f"kafka://{brokers}/orders"
        with sent.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": RECORDS, "square": 0}) + "\n")
        found = kafka.check(expected=str(sent), actual=topic, key="id", compare="square")
        assert found.outcome == Outcome.VIOLATED
        anomalies = {name: found.counts[name] for name in ("lost", "duplicated", "changed")}
        assert anomalies == {"lost": 1, "duplicated": 0, "changed": 0}
        assert found.counts["actual"] == RECORDS


@pytest.fixture
def echo(docker_runtime: DockerRuntime, echo_engine: None, tmp_path: Path) -> TopologyContainer:
    """Two servers, and a link to each; it is started by the test."""
    topology: Topology = echo_topology()
    return TopologyContainer(topology, out=tmp_path, runtime=docker_runtime)


@contextmanager
def traffic(echo: TopologyContainer) -> Iterator[None]:
    """The client asks a server again and again: without traffic a link is not seen to be slow."""
    client, end = echo.cluster.node("echo/client-1"), threading.Event()

    def ask() -> None:
        while not end.is_set():
            echo.cluster.runtime.exec(client.container, ["perl", "-e", ASK_FIRST_SERVER])

    with ThreadPoolExecutor(max_workers=1) as pool:
        asking = pool.submit(ask)
        try:
            yield
        finally:
            end.set()
            asking.result()


@pytest.mark.container
def test_other_containers_join_its_network(
    echo: TopologyContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its reaper is an image of a registry; the `with` block removes the container.
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    with (
        echo,
        DockerContainer(recipe("toolbox").tag)
        .with_command("sleep 600")
        .with_network(
            echo.network  # type: ignore[arg-type]
        ) as other,
    ):
        answer = other.exec(["perl", "-e", ASK_FIRST_SERVER])

    assert (answer.exit_code, answer.output) == (0, b"ping\n")


@pytest.mark.container
def test_another_client_of_toxiproxy_sees_and_sets_the_same_toxics(echo: TopologyContainer) -> None:
    with echo:
        host, _, port = str(echo.proxy_url).removeprefix("http://").partition(":")
        client = Toxiproxy()
        client.update_api_consumer(host, int(port))
        links = echo.cluster.links
        path, other = links.of("line")
        assert links.proxy is not None

        assert set(client.proxies()) == {path.name, other.name}
        with (
            traffic(echo),
            echo.fault("slow_link", "link line", latency_ms=50, limit_s=at_pace(30)),
        ):
            toxics = client.get_proxy(path.name).toxics()
            assert {toxic.attributes["latency"] for toxic in toxics.values()} == {50}
        assert client.get_proxy(path.name).toxics() == {}

        client.get_proxy(other.name).add_toxic(
            name="theirs", type="bandwidth", attributes={"rate": 10}
        )
        assert list(links.proxy.toxics(other.name)) == ["theirs"]
