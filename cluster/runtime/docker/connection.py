"""The connection to the engine: its choice, its version check, and the translation of its
errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, InvalidVersion

from streamquake.cluster.runtime.runtime import (
    ContainerError,
    EngineFacts,
    PortTaken,
    RuntimeUnavailable,
)

API_NEEDED = (1, 41)
"""Docker 20.10, the oldest tested engine."""

CALL_LIMIT_S = 120
"""An engine on a busy machine needs tens of seconds to remove a container; after this limit it
counts as hanging."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
PORT_TAKEN = ("port is already allocated", "bind: address already in use", "ports are not avail")
"""The engine's messages for a taken host port. A taken *container* address has another message
("Address already in use" with nothing before it), and another port would not help."""


def connect(limit_s: int | None = CALL_LIMIT_S) -> docker.APIClient:
    """A client of the engine of DOCKER_HOST, or of the current Docker context.

    `limit_s` is the longest time without an answer; None for streams. Raises RuntimeUnavailable.
    """
    try:
        client = docker.from_env(timeout=limit_s, max_pool_size=32).api  # type: ignore[arg-type]
        client.ping()
    except (DockerException, requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _unavailable(error) from error
    return client


def check(client: docker.APIClient) -> None:
    """Raise RuntimeUnavailable when this engine cannot run the harness's containers."""
    _reject_other_machine(client.base_url)
    with translate_errors("the engine's version"):
        version = client.version()
    if any("Podman" in part.get("Name", "") for part in version.get("Components") or ()):
        raise RuntimeUnavailable(
            "the container engine is Podman, on which sandboxes, faults and the reaper were never "
            "tested; point DOCKER_HOST at Docker 20.10 or newer"
        )
    api = tuple(int(part) for part in version["ApiVersion"].split("."))
    if api < API_NEEDED:
        needed = ".".join(map(str, API_NEEDED))
        raise RuntimeUnavailable(
            f"the container engine {version['Version']} speaks API {version['ApiVersion']}, "
            f"but {needed} is needed; update it to Docker 20.10 or newer"
        )
    if version.get("Os") != "linux":
        raise RuntimeUnavailable(
            f"the container engine runs {version.get('Os')} containers, but Linux containers are "
            "needed; switch Docker Desktop to Linux containers"
        )
    _reject_rootless(client)


def facts(client: docker.APIClient) -> EngineFacts:
    """What the engine says of itself. Raises ContainerError."""
    with translate_errors("the engine's facts"):
        found = client.info()
    return EngineFacts(
        name=f"Docker {found['ServerVersion']}",
        system=f"{found['OperatingSystem']}, cgroup v{found.get('CgroupVersion') or 1}",
        memory_bytes=found["MemTotal"],
        folder=Path(found["DockerRootDir"]),
    )


def _reject_rootless(client: docker.APIClient) -> None:
    """Raise RuntimeUnavailable for an engine without the rights of root, which says so in its
    security options (Docker's documentation, "Rootless mode")."""
    with translate_errors("the engine's rights"):
        options = client.info().get("SecurityOptions") or ()
    if any("name=rootless" in option for option in options):
        raise RuntimeUnavailable(
            "the container engine is rootless, on which faults of the network, the disk and the "
            "control groups were never tested; point DOCKER_HOST at an engine that runs as root "
            "(`unix:///var/run/docker.sock`)"
        )


def _reject_other_machine(url: str) -> None:
    """Raise RuntimeUnavailable for an engine that is reached over a network."""
    address = urlsplit(url)
    by_socket = address.scheme == "http+docker" and address.hostname != "ssh"
    if not by_socket and address.hostname not in LOOPBACK:
        raise RuntimeUnavailable(
            "the container engine of DOCKER_HOST runs on another machine, and nodes publish their "
            "ports on the loopback address of that machine; run Streamquake there"
        )


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Raise errors of the SDK and its connection as ContainerError or PortTaken."""
    try:
        yield
    except (
        DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as error:
        message = f"{what}: {_message(error)}"
        if any(text in message for text in PORT_TAKEN):
            raise PortTaken(message) from error
        raise ContainerError(message) from error


def _message(error: Exception) -> str:
    explanation = error.explanation if isinstance(error, APIError) else None
    text = str(explanation or error)
    if "No such image" in text:
        text += "; build the images with `streamquake images build`"
    return text


def _unavailable(error: Exception) -> RuntimeUnavailable:
    text = str(error)
    if "PermissionError" in text or "Permission denied" in text:
        return RuntimeUnavailable(
            "this user may not open the container engine's socket; add the user to the "
            "group of the socket (`sudo usermod -aG docker $USER`, then log in again) or run as "
            f"root ({text})"
        )
    if isinstance(error, InvalidVersion):
        return RuntimeUnavailable(
            f"the container engine is too old; update it to Docker 20.10 or newer ({text})"
        )
    how = (
        "start Docker Desktop"
        if sys.platform == "darwin"
        else "start it (`sudo systemctl start docker`, or `sudo service docker start`)"
    )
    return RuntimeUnavailable(
        f"no container engine answers; {how}, or point DOCKER_HOST at one that runs ({text})"
    )
