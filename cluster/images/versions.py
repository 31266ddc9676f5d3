"""The pins of a version: what `versions.yaml` lists of its line and of its release."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from streamquake.topologies.errors import ErrorKind, StreamquakeError

VERSIONS = Path(__file__).parent / "versions.yaml"
CONNECTORS: Mapping[str, Mapping[str, str]] = {"flink": {"kafka": "connector"}}
"""Kind -> the connectors whose version a topology may set apart from the release, and their pins.
"""


class UnknownImage(StreamquakeError, ValueError):
    """A kind, version or connector that no recipe describes."""

    kind = ErrorKind.IMAGE_FAILED


@dataclass(frozen=True)
class Pins:
    """Everything that `versions.yaml` pins for an image."""

    line: str
    pins: Mapping[str, str]
    """The versions and checksums by their names."""
    connectors: tuple[tuple[str, str], ...]
    """(name, version) of each connector that differs from the line's own."""


def pins_of(kind: str, version: str | None, connectors: Mapping[str, str]) -> Pins:
    """The pins of a line ("1.20") or a release ("1.20.1"); of the kind's default without one.
    Raises UnknownImage."""
    requested = version or str(_listed(kind)["default"])
    line = requested if requested in lines(kind) else requested.rpartition(".")[0]
    if line not in lines(kind):
        raise UnknownImage(
            f"no {kind} version {requested!r}{hint(requested, lines(kind))}; known: "
            f"{', '.join(lines(kind))}. Another is one line under {kind}.versions in {VERSIONS}, "
            "or a topology's own `image:`"
        )
    pins = {k: v for k, v in _listed(kind)["versions"][line].items() if k != "releases"}
    release = requested if requested != line else pins.get("release", line)
    pins |= _of_release(kind, line, release, pins)
    apart = dict(_apart(kind, pins, connectors))
    for name, connector in apart.items():
        pins |= _of_connector(CONNECTORS[kind][name], name, connector)
    texts = {key: str(value) for key, value in pins.items()}
    return Pins(line, texts, tuple(sorted(apart.items())))


def lines(kind: str) -> tuple[str, ...]:
    """The release lines of a kind, as listed."""
    return tuple(_listed(kind)["versions"])


def releases(kind: str, line: str) -> tuple[str, ...]:
    """The listed releases of a line; none for a kind without a table of them."""
    return tuple(_listed(kind)["versions"][line].get("releases", ()))


def built_lines(kind: str) -> tuple[str, ...]:
    """The lines that are built before a run needs them."""
    return tuple(_listed(kind).get("built", lines(kind)))


def debian() -> Mapping[str, str]:
    """The Debian suite, and its image in registries."""
    return dict(_listed("debian"))


def client_image(program: str) -> str:
    """The image to run a package client in; "" where there is none."""
    return str(_listed("clients").get(program, ""))


def hint(requested: str, known: Collection[str]) -> str:
    """A question for the known name that is most similar; "" where none is."""
    close = get_close_matches(requested, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _of_release(kind: str, line: str, release: str, pins: Mapping[str, Any]) -> dict[str, Any]:
    """The pins of an exact release; without a table its checksum is unknown."""
    table = _listed(kind)["versions"][line].get("releases")
    if table is None:
        of_line = release == pins.get("release", line)
        return {} if of_line else {"release": release, "sha256": ""}
    if release not in table:
        raise UnknownImage(
            f"no {kind} release {release!r}; known of this line: {', '.join(table)}. Another is "
            f"one line under {kind}.versions in {VERSIONS}, or a topology's own `image:`"
        )
    return {"release": release, **table[release]}


def _apart(
    kind: str, pins: Mapping[str, Any], connectors: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    known = CONNECTORS.get(kind, {})
    for name, version in connectors.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise UnknownImage(f"the {kind} image has no connector {name!r}; known: {names}")
        if version != pins[f"{known[name]}.version"]:
            yield name, version


def _of_connector(pin: str, name: str, version: str) -> dict[str, str]:
    """The jars without their dependencies are published for every version, those with them not."""
    return {f"{pin}.artifact": f"flink-connector-{name}", f"{pin}.version": version}


@cache
def _versions() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(VERSIONS.read_text(encoding="utf-8"))
    return loaded


def _listed(name: str) -> dict[str, Any]:
    listed: dict[str, Any] = _versions()[name]
    return listed
