"""Toxiproxy's admin interface, with a deadline on every call.

The published client (toxiproxy-python 0.1.1) keeps the server's address as class state, so two
runs in one process would share it, and sets no deadline, although removing a toxic under Kafka
traffic can hang the server (Shopify/toxiproxy#558). Hence these few calls on `requests`.
API: https://github.com/Shopify/toxiproxy#http-api
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

import requests

from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.topologies.errors import ErrorKind, StreamquakeError

ADMIN_PORT = 8474
DEADLINE_S = 5.0


class ToxiproxyError(StreamquakeError):
    """The proxy rejected a call or did not answer within its deadline."""

    kind = ErrorKind.CLUSTER_FAILED


class Toxiproxy:
    """One Toxiproxy server and its proxies."""

    def __init__(self, url: str, deadline_s: float = DEADLINE_S) -> None:
        self.url = url
        """Where its interface answers."""
        self._deadline_s = deadline_s

    def pending(self) -> str | None:
        try:
            self._call("GET", "/version")
        except ToxiproxyError as error:
            return str(error)
        return None

    def create(self, name: str, listen: str, upstream: str) -> None:
        self._call("POST", "/proxies", {"name": name, "listen": listen, "upstream": upstream})

    def delete(self, name: str) -> None:
        self._call("DELETE", f"/proxies/{_quoted(name)}")

    def add_toxic(
        self, proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, int]
    ) -> None:
        """Add a toxic; `stream` is downstream (server to client) or upstream."""
        toxic = {"name": name, "type": kind, "stream": stream, "attributes": dict(attributes)}
        self._call("POST", f"/proxies/{_quoted(proxy)}/toxics", toxic)

    def remove_toxic(self, proxy: str, name: str) -> None:
        """Remove a toxic; does nothing if it does not exist."""
        self._call("DELETE", f"/proxies/{_quoted(proxy)}/toxics/{name}", missing_is_fine=True)

    def proxies(self) -> Mapping[str, Mapping[str, Any]]:
        """All proxies by name, with `listen`, `upstream`, `enabled` and the list of `toxics`, as
        the server reports them."""
        found: Mapping[str, Mapping[str, Any]] = self._call("GET", "/proxies")
        return found

    def toxics(self, proxy: str) -> dict[str, dict[str, Any]]:
        """The toxics of a proxy by name, as the server reports them."""
        listed = self._call("GET", f"/proxies/{_quoted(proxy)}/toxics")
        return {toxic["name"]: toxic for toxic in listed}

    def bytes_passed(self, proxies: Collection[str]) -> int:
        """Bytes that some proxies together have passed, both ways, by the server's counters.

        The server adds a connection's bytes when the connection has closed.
        """
        text = self._request("GET", "/metrics").text
        counter = re.compile(r'^toxiproxy_proxy_sent_bytes_total{.*proxy="(.*?)".*} (\S+)$', re.M)
        return sum(int(float(v)) for proxy, v in counter.findall(text) if proxy in proxies)

    def _call(
        self, method: str, path: str, document: Any = None, missing_is_fine: bool = False
    ) -> Any:
        response = self._request(method, path, document)
        if response.status_code == 404 and missing_is_fine:
            return None
        if not response.ok:
            raise ToxiproxyError(f"{method} {path}: {response.status_code} {response.text}")
        is_json = "json" in response.headers.get("Content-Type", "")
        return response.json() if response.content and is_json else None

    def _request(self, method: str, path: str, document: Any = None) -> requests.Response:
        with loopback_session() as session:
            try:
                return session.request(
                    method, self.url + path, json=document, timeout=self._deadline_s
                )
            except requests.RequestException as error:
                raise ToxiproxyError(f"{method} {path}: {error}") from error


def _quoted(name: str) -> str:
    return quote(name, safe="")
