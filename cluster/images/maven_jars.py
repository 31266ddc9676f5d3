"""Jars by their Maven coordinates, such as connectors that a job names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from streamquake.cluster.images import fetch
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.store import ImageStore, StepFailed
from streamquake.topologies.errors import ErrorKind, StreamquakeError

PART = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}"
COORDINATES = re.compile(f"{PART}:{PART}:{PART}")
"""GROUP:ARTIFACT:VERSION."""
CHANGING = re.compile(r"SNAPSHOT|:(LATEST(\.\w+)?|RELEASE)$", re.IGNORECASE)
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
SHOWN_LINES = 3
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class JarMissing(StreamquakeError):
    """A jar could not be fetched."""

    kind = ErrorKind.IMAGE_FAILED


def is_coordinates(jar: str) -> bool:
    """Whether a jar is named by its coordinates, and not by its path."""
    return COORDINATES.fullmatch(jar) is not None


def snapshot_problem(coordinates: str) -> str | None:
    """Why a jar cannot be named by these coordinates; None where it can."""
    if not CHANGING.search(coordinates):
        return None
    return f"{coordinates} may change between runs; name a release"


def fetch_jars(
    jars: Iterable[str],
    show_message: Callable[[str], None] = lambda line: None,
    images: ImageStore | None = None,
) -> tuple[str, ...]:
    """The paths of jars: those with coordinates are in the cache, fetched by Maven at their first
    use, without their dependencies. `images` are for a Maven in a container, where none is
    installed. Raises JarMissing."""
    clients = Clients(show_message, images)
    return tuple(str(fetch_jar(jar, clients)) if is_coordinates(jar) else jar for jar in jars)


def fetch_jar(coordinates: str, clients: Clients) -> Path:
    """The path of the jar with these coordinates in the cache, as by `fetch_jars`."""

    def fill(folder: Path) -> None:
        clients.show_message(f"fetching {coordinates} with Maven")
        command = ["mvn", "-B", "-ntp", "-q", COPY]
        command += [f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"]
        clients.run(f"fetching {coordinates} with Maven", command, folder)

    try:
        folder = fetch.cached(f"jar-{coordinates.replace(':', '+')}", fill)
    except StepFailed as failed:
        log = ESCAPES.sub("", failed.log)
        lines = [line for line in log.splitlines() if line.strip()][:SHOWN_LINES]
        raise JarMissing(f"{failed.step} failed: {' '.join(lines) or 'no output'}") from failed
    if (jar := next(folder.glob("*.jar"), None)) is None:
        raise JarMissing(f"{folder} has no jar any more; remove it, and it is fetched again")
    return jar
