"""The clients of the engines reach ports of this machine, with a proxy in the environment too."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from streamquake.cluster.engines.flink.rest import FlinkRest
from streamquake.cluster.engines.spark.driver_listener import LiveDriver
from streamquake.cluster.engines.spark.master import LiveMaster

pytestmark = pytest.mark.slow

DOCUMENT = {"life": "a", "last": {}, "news": [], "workers": []}


class Engine(BaseHTTPRequestHandler):
    """Answers every request with the same document."""

    def do_GET(self) -> None:
        text = json.dumps(DOCUMENT).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda address: FlinkRest(address, deadline_s=5).get("/overview"), DOCUMENT),
        (lambda address: LiveMaster(address).state(), DOCUMENT),
        (lambda address: LiveDriver(address).now().life, "a"),
        (lambda address: LiveDriver(address).events(0).life, "a"),
    ],
)
def test_a_client_ignores_the_proxy_of_the_environment(
    address: str, ask: Callable[[str], Any], answer: Any
) -> None:
    assert ask(address) == answer
