"""A Kafka with TLS and logins that another one started: a run and `reconcile` log in, and no record
holds the password."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.interactive.topology_container import TopologyContainer
from streamquake.topologies.model import Topology

pytestmark = [pytest.mark.container, pytest.mark.nightly]

PASSWORD = 'pa ss"w\\rd'
START = r"""
set -eu
cd /tmp
address=$(hostname -i)
store="-alias broker -storetype PKCS12 -keystore broker.p12 -storepass changeit"
keytool -genkeypair $store -keyalg RSA -dname CN=broker -ext "SAN=IP:$address"
keytool -exportcert -rfc $store > ca.pem
cat > server.properties <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=CLIENT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093
advertised.listeners=CLIENT://$address:9092
listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENT:SASL_SSL
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.client.plain.sasl.jaas.config=JAAS
ssl.keystore.type=PKCS12
ssl.keystore.location=/tmp/broker.p12
ssl.keystore.password=changeit
ssl.truststore.type=PEM
ssl.truststore.location=/tmp/ca.pem
offsets.topic.replication.factor=1
log.dirs=/var/lib/kafka/data
END
exec /docker-entrypoint.sh broker /tmp/server.properties
"""
EXPERIMENT = """\
name: login
topology:
  base: existing
  services:
    kafka:
      endpoint: "SERVER"
      properties:
        security.protocol: SASL_SSL
        sasl.mechanism: PLAIN
        sasl.username: app
        sasl.password: ${env:TEST_KAFKA_PASSWORD}
        ssl.ca.location: ca.pem
workload: {numbered: {records: 2000, rate_per_s: 1000, topic: orders, partitions: 2}}
checks: [exactly_once]
"""


@dataclass(frozen=True)
class SecureKafka:
    """A broker, and the folder with the certificate that its clients trust."""

    server: str
    folder: Path


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = f'username="app" password="{quoted}" user_app="{quoted}";'
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    # In a properties file a backslash is written twice, and twice more in a text of the shell.
    jaas = f"{module} {login}".replace("\\", "\\\\\\\\")
    service = {
        "engine": "container",
        "image": "streamquake/kafka",
        "ports": {"client": 9092},
        "command": ("bash", "/opt/start.sh"),
        "files": {"/opt/start.sh": START.replace("JAAS", jaas)},
        "volumes": ("/var/lib/kafka/data",),
        "nodes": {"server": {"memory_mb": 768, "env": {"JVM_HEAP_MB": "384"}}},
    }
    topology = Topology.model_validate({"name": "secure", "services": {"kafka": service}})
    folder = tmp_path_factory.mktemp("secure")
    with TopologyContainer(topology, out=folder / "up", runtime=DockerRuntime()) as started:
        node = started.cluster.node("kafka/server-1")
        answer = started.cluster.runtime.exec(node.container, ["cat", "/tmp/ca.pem"])
        (folder / "ca.pem").write_text(answer.output)
        server = f"{node.ip}:9092"
        login_of_clients = KafkaConnection.of(
            server,
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "app",
                "sasl.password": PASSWORD,
                "ssl.ca.location": str(folder / "ca.pem"),
            },
        )
        admin = AdminClient({**login_of_clients.client_settings(), "log_level": 0})
        admin.create_topics([NewTopic("orders", num_partitions=2)])["orders"].result(60)
        yield SecureKafka(server, folder)


def streamquake(
    folder: Path, password: str | None, *words: str
) -> subprocess.CompletedProcess[str]:
    secret = {} if password is None else {"TEST_KAFKA_PASSWORD": password}
    return subprocess.run(
        [sys.executable, "-m", "streamquake", *words],
        cwd=folder,
        env={**os.environ, **secret},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_run_and_a_comparison_log_in(kafka: SecureKafka) -> None:
    folder = kafka.folder
    (folder / "login.yaml").write_text(EXPERIMENT.replace("SERVER", kafka.server))

    run = streamquake(folder, PASSWORD, "run", "login.yaml", "--out", "runs")

    assert run.returncode == 0, run.stdout + run.stderr
    results = json.loads((folder / "runs" / "latest" / "results.json").read_text())
    counts = {check["check"]: check["counts"] for check in results["checks"]}
    assert counts["exactly_once"]["actual"] == 2000
    record = (folder / "runs" / "latest" / "run.json").read_text()
    assert "${env:TEST_KAFKA_PASSWORD}" in record
    texts = [p.read_bytes() for p in folder.rglob("*") if p.is_file()]
    assert not any(PASSWORD.encode() in text for text in texts)

    login = EXPERIMENT[EXPERIMENT.index("      properties:") : EXPERIMENT.index("workload")]
    (folder / "side.yaml").write_text("\n".join(line[6:] for line in login.splitlines()) + "\n")
    topic = f"kafka://{kafka.server}/orders"
    sides = ("--expected", topic, "--actual", topic, "--key", "key,seq")
    maps = ("--expected-map", "side.yaml", "--actual-map", "side.yaml")
    compared = streamquake(folder, PASSWORD, "reconcile", *sides, *maps, "--json", "found.json")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert json.loads((folder / "found.json").read_text())["counts"]["actual"] == 2000


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("password", "message"),
    [
        (None, "sasl.password: the environment variable TEST_KAFKA_PASSWORD is not set; set it"),
        ("wrong", "Authentication failed"),
    ],
)
def test_a_login_that_fails_is_told(kafka: SecureKafka, password: str | None, message: str) -> None:
    (kafka.folder / "fails.yaml").write_text(
        EXPERIMENT.replace("SERVER", kafka.server) + "limits: {ready_s: 8}\n"
    )

    run = streamquake(kafka.folder, password, "run", "fails.yaml", "--out", "failed")

    assert run.returncode in (2, 3), run.stdout + run.stderr
    assert message in run.stdout + run.stderr
