"""Flink's REST interfaces (JobManager and SQL gateway), with a deadline on every call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from streamquake.cluster.engines.flink.config import GATEWAY_REST, REST
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.cluster.runtime.runtime import ContainerStatus
from streamquake.topologies.errors import ErrorKind, StreamquakeError, root_cause

DEADLINE_S = 5.0
UPLOAD_S = 120.0


class FlinkUnreachable(StreamquakeError):
    """No process answered within the deadline; a retry may help."""

    kind = ErrorKind.CLUSTER_FAILED


class FlinkError(StreamquakeError):
    """Flink answered with an error; the message is its root cause, `status` the HTTP status."""

    kind = ErrorKind.CLUSTER_FAILED

    def __init__(self, status: int, cause: str) -> None:
        self.status = status
        super().__init__(cause)


class FlinkRest:
    """One REST interface, behind one address (HOST:PORT or URL), or several of which any answers
    for all.

    Standby JobManagers forward every request to the leader. A context manager; not to be shared
    between threads.
    """

    def __init__(self, *addresses: str, deadline_s: float = DEADLINE_S) -> None:
        self._urls = [each if "://" in each else f"http://{each}" for each in addresses]
        self._deadline_s = deadline_s
        self._session = loopback_session()

    def get(self, path: str, **parameters: str) -> Any:
        return self._call("GET", path, params=parameters)

    def post(self, path: str, document: Mapping[str, Any], within_s: float | None = None) -> Any:
        """`within_s` is a longer deadline than the usual one, in seconds."""
        return self._call("POST", path, json=document, timeout=within_s or self._deadline_s)

    def patch(self, path: str, **parameters: str) -> Any:
        return self._call("PATCH", path, params=parameters)

    def put(self, path: str, document: Mapping[str, Any]) -> Any:
        return self._call("PUT", path, json=document)

    def delete(self, path: str) -> Any:
        return self._call("DELETE", path)

    def upload(self, path: str, field: str, file: Path) -> Any:
        with file.open("rb") as content:
            part = {field: (file.name, content, "application/x-java-archive")}
            return self._call("POST", path, files=part, timeout=UPLOAD_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        """Use the address that answered last. A query is retried at the other addresses; a change
        is sent once, to an address that has just answered a query."""
        if method != "GET":
            if len(self._urls) > 1:
                self.get("/overview")
            return self._send(method, path, **arguments)
        for others in reversed(range(len(self._urls))):
            try:
                return self._send(method, path, **arguments)
            except FlinkUnreachable:
                self._urls.append(self._urls.pop(0))
                if not others:
                    raise
        raise FlinkUnreachable(f"{method} {path}: no address to send it to")

    def _send(self, method: str, path: str, **arguments: Any) -> Any:
        arguments.setdefault("timeout", self._deadline_s)
        try:
            response = self._session.request(method, self._urls[0] + path, **arguments)
        except requests.RequestException as error:
            raise FlinkUnreachable(f"{method} {path}: {type(error).__name__}") from error
        document = _document(response)
        if response.status_code == 503 or not isinstance(document, dict | list):
            raise FlinkUnreachable(f"{method} {path}: not ready, HTTP {response.status_code}")
        if not response.ok:
            raise FlinkError(response.status_code, _cause(document))
        return document


def jobmanager(cluster: LiveCluster, service: str) -> FlinkRest:
    """The JobManagers of a service, through their published ports, frozen ones last; or those of an
    existing Flink, at its endpoint."""
    if service in cluster.clients:
        known: FlinkRest = cluster.clients[service]
        return known
    if (endpoint := cluster.topology.services[service].endpoint) is not None:
        return FlinkRest(*(address.rstrip("/") for address in endpoint.split(",")))
    nodes = cluster.of_role(f"{service}/jobmanager")
    if len(nodes) > 1:
        nodes = tuple(
            sorted(nodes, key=lambda n: cluster.state(n).status != ContainerStatus.RUNNING)
        )
    return FlinkRest(*(cluster.address(node, REST) for node in nodes))


def gateway(cluster: LiveCluster, service: str) -> FlinkRest:
    """The SQL gateway of a service, through its published port."""
    if (name := f"{service}/gateway") in cluster.clients:
        known: FlinkRest = cluster.clients[name]
        return known
    return FlinkRest(cluster.address(cluster.of_role(f"{service}/gateway")[0], GATEWAY_REST))


def _document(response: requests.Response) -> Any:
    """The JSON answer. Flink writes NaN as a number's value, which Python reads too."""
    try:
        return json.loads(response.text or "{}")
    except ValueError:
        return None


def _cause(document: Any) -> str:
    errors = document.get("errors", []) if isinstance(document, dict) else []
    messages = [str(error) for error in errors if str(error) != "Internal server error."]
    text = messages[-1] if messages else "no reason given"
    return root_cause(text.replace("<Exception on server side:", ""))
