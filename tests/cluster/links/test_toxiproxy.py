"""The admin calls to a server that answers, rejects, or hangs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from streamquake.cluster.links.toxiproxy import Toxiproxy, ToxiproxyError

pytestmark = pytest.mark.slow

METRICS = """# TYPE toxiproxy_proxy_sent_bytes_total counter
toxiproxy_proxy_sent_bytes_total{direction="downstream",proxy="a",upstream="x"} 1.5e+03
toxiproxy_proxy_sent_bytes_total{direction="upstream",proxy="a",upstream="x"} 20
toxiproxy_proxy_sent_bytes_total{direction="upstream",proxy="ab",upstream="x"} 7
toxiproxy_proxy_received_bytes_total{direction="upstream",proxy="a",upstream="x"} 999
"""
REJECTION = {"error": "bad request body", "status": 400}


class Admin(BaseHTTPRequestHandler):
    """Answers as Toxiproxy does; a path with `hangs` waits until the end of the test."""

    test_ended = threading.Event()
    requests: list[tuple[str, str, object]] = []  # noqa: RUF012 - emptied by the fixture

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.requests.append((self.command, self.path, body))
        if "hangs" in self.path:
            self.test_ended.wait(60)
        known = {
            "/metrics": (200, METRICS),
            "/version": (200, '{"version": "2.12.0"}'),
            "/proxies/a/toxics": (200, '[{"name": "late", "type": "latency"}]'),
            "/proxies/a/toxics/late": (204, ""),
            "/proxies": (400, json.dumps(REJECTION)),
        }
        status, text = known.get(self.path, (404, '{"error": "not found"}'))
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if "#" in text else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_DELETE = _answer

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    Admin.requests.clear()
    Admin.test_ended.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Admin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    Admin.test_ended.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxy(url: str) -> Toxiproxy:
    return Toxiproxy(url, deadline_s=60)


def test_bytes_of_the_named_proxies_are_counted_in_both_directions(proxy: Toxiproxy) -> None:
    assert proxy.bytes_passed(["a"]) == 1520
    assert proxy.bytes_passed(["a", "ab"]) == 1527
    assert proxy.bytes_passed(["none"]) == 0


def test_toxics_are_listed_by_name(proxy: Toxiproxy) -> None:
    assert proxy.toxics("a") == {"late": {"name": "late", "type": "latency"}}


def test_a_missing_toxic_counts_as_removed(proxy: Toxiproxy) -> None:
    proxy.remove_toxic("a", "late")
    proxy.remove_toxic("a", "never-was")

    assert [path for _, path, _ in Admin.requests] == [
        "/proxies/a/toxics/late",
        "/proxies/a/toxics/never-was",
    ]


def test_a_rejection_has_the_servers_message(proxy: Toxiproxy) -> None:
    with pytest.raises(ToxiproxyError, match=r"POST /proxies: 400 .*bad request body"):
        proxy.create("a", "0.0.0.0:1", "b:2")
    with pytest.raises(ToxiproxyError, match="404"):
        proxy.add_toxic("none", "late", "latency", "upstream", {"latency": 1})


def test_a_call_to_a_server_that_hangs_fails_at_the_deadline(url: str) -> None:
    with pytest.raises(ToxiproxyError, match="timed out"):
        Toxiproxy(url, deadline_s=0.3).remove_toxic("a", "hangs")


def test_pending_returns_the_error_or_none(proxy: Toxiproxy) -> None:
    assert proxy.pending() is None
    assert "refused" in (Toxiproxy("http://127.0.0.1:9").pending() or "")
