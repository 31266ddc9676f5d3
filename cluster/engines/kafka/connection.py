"""How clients connect to a Kafka: its servers, and how they log in.

The properties have the names of librdkafka
(https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md). Spark's client, which is
that of Java, gets them by its own names (https://kafka.apache.org/documentation/#security).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.named_files import read_bytes, read_text
from streamquake.topologies.problems import did_you_mean
from streamquake.topologies.secret_references import FORMS, is_reference, resolved
from streamquake.topologies.service_files import LOCATION

C = TypeVar("C")

PROTOCOL, MECHANISM = "security.protocol", "sasl.mechanism"
USER, PASSWORD = "sasl.username", "sasl.password"
CA, CERTIFICATE, KEY = "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"
KEY_PASSWORD = "ssl.key.password"
NAMES = "ssl.endpoint.identification.algorithm"
VALUES: Mapping[str, tuple[str, ...]] = {
    PROTOCOL: ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    MECHANISM: ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    NAMES: ("https", "none"),
}
"""Property -> its values. `NAMES` says whether the certificate of a broker must have its name."""
OF_SASL = (MECHANISM, USER, PASSWORD)
OF_SSL = (CA, CERTIFICATE, KEY, KEY_PASSWORD, NAMES)
KNOWN = (PROTOCOL, *OF_SASL, *OF_SSL)
"""Others are rejected: some make the client load a library or run a program."""

PEM = b"-----BEGIN "
"""How a certificate or a key in PEM begins; text may precede it."""


class PropertiesUnusable(StreamquakeError, ValueError):
    """No client can be made with the properties, such as those that name a file in another form
    than PEM."""

    kind = ErrorKind.BAD_INPUT


@dataclass(frozen=True)
class KafkaConnection:
    """The servers of a Kafka, and the properties of its clients as the document gives them."""

    servers: str
    """HOST:PORT, several of them between commas."""
    properties: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, servers: str, properties: Mapping[str, str]) -> KafkaConnection:
        """A connection with these properties."""
        return cls(servers, tuple(sorted(properties.items())))

    def __str__(self) -> str:
        return self.servers

    def client_settings(self) -> dict[str, str]:
        """The settings of a client of librdkafka. Raises SecretMissing, PropertiesUnusable."""
        return {"bootstrap.servers": self.servers, **self._resolved()}

    def java_settings(self) -> dict[str, str]:
        """The settings of a client of Java. Raises SecretMissing, PropertiesUnusable."""
        own = self._resolved()
        same = {name: own[name] for name in (PROTOCOL, MECHANISM, KEY_PASSWORD) if name in own}
        settings = {"bootstrap.servers": self.servers, **same}
        if MECHANISM in own:
            settings["sasl.jaas.config"] = _jaas(own[MECHANISM], own[USER], own[PASSWORD])
        if CA in own:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": own[CA]}
        if CERTIFICATE in own:
            settings["ssl.keystore.type"] = "PEM"
            settings["ssl.keystore.certificate.chain"] = _text_of(CERTIFICATE, own[CERTIFICATE])
            settings["ssl.keystore.key"] = _text_of(KEY, own[KEY])
        if own.get(NAMES) == "none":
            settings[NAMES] = ""
        return settings

    def _resolved(self) -> dict[str, str]:
        own = {name: resolved(name, value) for name, value in self.properties}
        for name, message in file_problems(own):
            raise PropertiesUnusable(f"{name}: {message}")
        return own


def client_of(kind: Callable[[dict[str, Any]], C], settings: dict[str, Any]) -> C:
    """A client of librdkafka. Raises PropertiesUnusable where it rejects the settings, as it does a
    key whose password is another one."""
    try:
        return kind(settings)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._INVALID_ARG:
            raise
        raise PropertiesUnusable(f"no client can be made: {error.args[0].str()}") from error


def property_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, problem) of properties by which no client could connect."""
    for name, value in properties.items():
        if name not in KNOWN:
            yield name, f"a client has no such property here{did_you_mean(name, KNOWN)}"
        elif name in VALUES and value not in VALUES[name]:
            yield name, f"expected one of {', '.join(VALUES[name])}, got {value}"
        elif "${" in value and not is_reference(value):
            # Sent as it is, it would be taken for the secret, and recorded.
            yield name, f"expected {FORMS} as the whole value, or a value without `${{`"
    protocol = properties.get(PROTOCOL, "PLAINTEXT")
    if protocol not in VALUES[PROTOCOL]:
        return  # what the others need depends on the one that was meant
    for names, part in ((OF_SASL, "SASL"), (OF_SSL, "SSL")):
        if part not in protocol:
            for name in names:
                if name in properties:
                    message = f"it has a meaning only where `{PROTOCOL}` has {part}, and it is"
                    yield name, f"{message} {protocol}"
    needed: tuple[str, ...] = OF_SASL if "SASL" in protocol else ()
    if CERTIFICATE in properties or KEY in properties:
        needed += (CERTIFICATE, KEY)
    for name in needed:
        if name not in properties:
            yield name, f"expected a value, which {PROTOCOL}: {protocol} needs, got none"


def file_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, problem) of full paths that lead to no file in PEM. Where a value is a reference,
    its path is known only when a client connects."""
    for name, path in properties.items():
        if not name.endswith(LOCATION) or "${" in path:
            continue
        try:
            if PEM not in read_bytes(Path(path)):
                yield name, f"expected a file in PEM, which {path} is not"
        except OSError as error:
            yield name, f"expected a file in PEM, and {path} cannot be read: {error.strerror}"


def _jaas(mechanism: str, user: str, password: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password))
    login = 'username="{}" password="{}"'.format(*quoted)
    return f"org.apache.kafka.common.security.{module} required {login};"


def _text_of(name: str, path: str) -> str:
    try:
        return read_text(Path(path))
    except OSError as error:
        raise PropertiesUnusable(f"{name}: {path} cannot be read: {error.strerror}") from error
