"""Connections to a Kafka: both clients log in the same way, and secrets are read only then."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from streamquake.cluster.engines.kafka.connection import (
    KafkaConnection,
    PropertiesUnusable,
    client_of,
    property_problems,
)
from streamquake.cluster.topology_validation import checked_topology
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.topologies.secret_references import SecretMissing
from streamquake.topologies.yaml_document import parse_document

LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "app",
    "sasl.password": "${env:KAFKA_PASSWORD}",
    "ssl.ca.location": "/etc/ca.pem",
}
PEM = "text before it\n-----BEGIN CERTIFICATE-----\n"


@pytest.fixture
def login(tmp_path: Path) -> dict[str, str]:
    """A login whose file is there."""
    (tmp_path / "ca.pem").write_text(PEM)
    return {**LOGIN, "ssl.ca.location": str(tmp_path / "ca.pem")}


def test_without_properties_there_are_only_the_servers() -> None:
    connection = KafkaConnection.of("a:1,b:2", {})

    assert connection.client_settings() == {"bootstrap.servers": "a:1,b:2"}
    assert connection.java_settings() == {"bootstrap.servers": "a:1,b:2"}
    assert str(connection) == "a:1,b:2"


def test_both_clients_log_in(login: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", 'a"b\\c')
    connection = KafkaConnection.of("a:1", login)

    assert connection.client_settings() == {
        **login,
        "bootstrap.servers": "a:1",
        "sasl.password": 'a"b\\c',
    }
    assert connection.java_settings() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="app" password="a\\"b\\\\c";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": login["ssl.ca.location"],
    }
    assert 'a"b' not in repr(connection)


def test_a_plain_password_has_another_module_in_java(login: dict[str, str]) -> None:
    login |= {"sasl.mechanism": "PLAIN", "sasl.password": "p"}

    jaas = KafkaConnection.of("a:1", login).java_settings()["sasl.jaas.config"]

    assert jaas.startswith("org.apache.kafka.common.security.plain.PlainLoginModule required ")


def test_a_client_may_show_a_certificate(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text(f"{PEM}{name}")
    connection = KafkaConnection.of(
        "a:1",
        {
            "security.protocol": "SSL",
            "ssl.certificate.location": str(tmp_path / "cert.pem"),
            "ssl.key.location": str(tmp_path / "key.pem"),
            "ssl.endpoint.identification.algorithm": "none",
        },
    )

    assert connection.java_settings() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": f"{PEM}cert.pem",
        "ssl.keystore.key": f"{PEM}key.pem",
        "ssl.endpoint.identification.algorithm": "",
    }


def test_a_secret_is_read_from_a_file_without_its_line_break(
    login: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("p w\n")
    login |= {"sasl.password": f"${{file:{tmp_path}/password}}"}

    assert KafkaConnection.of("a:1", login).client_settings()["sasl.password"] == "p w"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("${env:NO_SUCH_VARIABLE}", "the environment variable NO_SUCH_VARIABLE is not set; set it"),
        ("${file:/nowhere/p}", "/nowhere/p cannot be read: No such file or directory"),
    ],
)
def test_a_secret_that_is_not_there_is_named(reference: str, reason: str) -> None:
    connection = KafkaConnection.of("a:1", {**LOGIN, "sasl.password": reference})

    with pytest.raises(SecretMissing, match=f"^sasl.password: {reason}"):
        connection.client_settings()


@pytest.mark.parametrize(
    ("properties", "problems"),
    [
        (LOGIN, []),
        ({"security.protocol": "SSL"}, []),
        ({"plugin.library.paths": "/x.so"}, ["plugin.library.paths: a client has no such"]),
        ({"sasl.usrname": "a"}, ["sasl.usrname: a client has no such property here; did you"]),
        ({"security.protocol": "TLS"}, ["security.protocol: expected one of PLAINTEXT, SSL"]),
        (
            {**LOGIN, "security.protocol": "sasl_ssl", "ssl.key.location": "/k"},
            ["security.protocol: expected one of PLAINTEXT, SSL"],
        ),
        ({**LOGIN, "sasl.mechanism": "GSSAPI"}, ["sasl.mechanism: expected one of PLAIN, SCRAM"]),
        ({"ssl.ca.location": "/ca"}, ["ssl.ca.location: it has a meaning only where"]),
        (
            {"security.protocol": "SSL", "sasl.username": "a"},
            ["sasl.username: it has a meaning only where `security.protocol` has SASL, and it is"],
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.username": "a"},
            [f"sasl.{name}: expected a value, which" for name in ("mechanism", "password")],
        ),
        (
            {"security.protocol": "SSL", "ssl.key.location": "/k"},
            ["ssl.certificate.location: expected a value, which"],
        ),
    ],
)
def test_properties_by_which_no_client_could_connect_are_rejected(
    properties: dict[str, str], problems: list[str]
) -> None:
    found = [f"{name}: {message}" for name, message in property_problems(properties)]

    assert len(found) == len(problems)
    assert all(text.startswith(start) for text, start in zip(found, problems, strict=True))


@pytest.mark.parametrize("value", ["user-${env:X}", "${ENV:X}", " ${env:X}", "${env:X}\n", "${X}"])
def test_a_reference_is_the_whole_value(value: str) -> None:
    ((name, message),) = property_problems({**LOGIN, "sasl.username": value})

    assert name == "sasl.username"
    assert message.startswith("expected `${env:NAME}` or `${file:PATH}` as the whole value, or")


def test_a_file_that_is_no_pem_is_named_when_a_client_connects(
    login: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ca.der").write_bytes(b"\x30\x82\xff")
    monkeypatch.setenv("CA", str(tmp_path / "ca.der"))
    monkeypatch.setenv("KAFKA_PASSWORD", "p")
    connection = KafkaConnection.of("a:1", {**login, "ssl.ca.location": "${env:CA}"})

    for settings in (connection.client_settings, connection.java_settings):
        with pytest.raises(PropertiesUnusable, match=r"^ssl\.ca\.location: expected a file in PEM"):
            settings()


def test_a_key_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(PEM.encode() + b"\xff")
    names = ("ssl.certificate.location", "ssl.key.location")
    login = {"security.protocol": "SSL", **dict.fromkeys(names, str(path))}

    with pytest.raises(PropertiesUnusable, match="cannot be read: it is no text in UTF-8"):
        KafkaConnection.of("a:1", login).java_settings()


def test_settings_that_the_library_rejects_are_bad_input(login: dict[str, str]) -> None:
    login |= {"sasl.password": "p"}

    with pytest.raises(PropertiesUnusable, match=r"no client can be made: .*ssl\.ca\.location"):
        client_of(Producer, KafkaConnection.of("a:1", login).client_settings())


def test_other_errors_of_the_library_are_not_bad_input() -> None:
    def fails(settings: dict[str, object]) -> None:
        raise KafkaException(KafkaError(KafkaError._FAIL))

    with pytest.raises(KafkaException):
        client_of(fails, {})


TOPOLOGY = """
name: t
services:
  kafka:
    endpoint: "a:1"
    engine: kafka
    properties: {security.protocol: SSL, ssl.ca.location: ca.pem}
"""


def test_a_topology_has_the_full_paths_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    topology, problems = checked_topology(parse_document(TOPOLOGY, str(tmp_path / "t.yaml")))

    assert (problems, topology is not None) == ([], True)
    assert topology is not None
    properties = topology.services["kafka"].properties
    assert properties["ssl.ca.location"] == str(tmp_path / "ca.pem")


def test_a_path_may_begin_with_the_home_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ca.pem").write_text(PEM)
    text = TOPOLOGY.replace("ca.pem", "~/ca.pem")

    topology, problems = checked_topology(parse_document(text, "elsewhere/t.yaml"))

    assert (problems, topology is not None) == ([], True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "and {} cannot be read: No such file"), (b"\x30\xff", "which {} is not")],
)
def test_a_file_of_tls_is_one_in_pem(content: bytes | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    document = parse_document(TOPOLOGY, str(tmp_path / "t.yaml"))

    (problem,) = checked_topology(document)[1]

    assert problem.path == "services.kafka.properties.ssl.ca.location"
    words = reason.format(tmp_path / "ca.pem")
    assert problem.message.startswith(f"expected a file in PEM, {words}")
    assert checked_topology(document, recorded=True)[1] == []


def test_a_path_that_is_kept_elsewhere_is_read_when_a_client_connects() -> None:
    text = TOPOLOGY.replace("ca.pem", "'${env:CA}'")

    assert checked_topology(parse_document(text, "t.yaml"))[1] == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("SSL,", "TLS,", "services.kafka.properties.security.protocol: expected one of"),
        ('endpoint: "a:1"', "nodes: {broker: 1}", "only a Kafka at an `endpoint` takes"),
        ('"a:1"', '"u:secret@a:1"', 'HOST:PORT, got "***@a:1"'),
        ("engine: kafka", "engine: hdfs", "only Kafka takes `properties`, and this is hdfs"),
    ],
)
def test_properties_are_for_clients_of_a_kafka_that_runs(old: str, new: str, problem: str) -> None:
    _, problems = checked_topology(parse_document(TOPOLOGY.replace(old, new), "t.yaml"))

    assert any(problem in f"{found.path}: {found.message}" for found in problems)


def test_a_secret_that_is_a_number_is_one_problem_and_not_shown() -> None:
    login = "security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: a"
    text = TOPOLOGY.replace(
        "security.protocol: SSL, ssl.ca.location: ca.pem", f"{login}, sasl.password: 12345"
    )

    (problem,) = checked_topology(parse_document(text, "t.yaml"))[1]

    assert problem.path == "services.kafka.properties.sasl.password"
    assert problem.message == "expected text, got a value that is not shown; write it in quotes"


def test_a_record_has_a_reference_and_no_secret() -> None:
    recorded = hide_secrets({"properties": {**LOGIN, "ssl.key.password": "hidden"}})

    assert recorded["properties"] == {**LOGIN, "ssl.key.password": "***"}
