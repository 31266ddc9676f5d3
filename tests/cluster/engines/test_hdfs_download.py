"""Copying a folder of HDFS over HTTP, from a server that answers as NameNode and as DataNode."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

from streamquake.cluster.engines.hdfs.download import NotDownloaded, download
from streamquake.cluster.engines.hdfs.namenode import LiveNameNode, OpenRejected

DATANODE = "hdfs-datanode-1"


class Server(ThreadingHTTPServer):
    """HDFS with some files below `/output/totals`; a test changes what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {
            "_SUCCESS": b"",
            "hour=12/part-0": b'{"a": 1}\n',
            "hour=12/.part-1.inprogress": b'{"a": 2}\n',
            "name=a%3Ab c/part-0": b"x" * 3_000_000,
        }
        self.lengths: dict[str, int] = {}
        self.location = DATANODE
        self.datanode_status = 200
        self.address = f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: Any) -> None: ...

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path).removeprefix("/webhdfs/v1")
        query = parse_qs(url.query)
        if "datanode" in query:
            self.answer(self.server.files[path[1:]], self.server.datanode_status)
        elif query["op"] == ["LISTSTATUS"]:
            self.answer(json.dumps(self.listing(path.removeprefix("/output/totals"))).encode())
        elif self.server.location:
            name = quote(path.removeprefix("/output/totals/"), safe="")
            location = f"http://{self.server.location}:9864/webhdfs/v1/{name}?datanode=1"
            self.answer(json.dumps({"Location": location}).encode())
        else:
            rejected = {"exception": "RetriableException", "message": "in safe mode\nat x"}
            self.answer(json.dumps({"RemoteException": rejected}).encode(), 403)

    def listing(self, below: str) -> dict[str, Any]:
        start = below.strip("/") + "/" * bool(below.strip("/"))
        entries: dict[str, dict[str, Any]] = {}
        for name, content in self.server.files.items():
            if name.startswith(start):
                first, _, rest = name.removeprefix(start).partition("/")
                length = self.server.lengths.get(name, len(content))
                kind = {"type": "DIRECTORY" if rest else "FILE", "length": 0 if rest else length}
                entries[first] = {"pathSuffix": first, **kind}
        return {"FileStatuses": {"FileStatus": list(entries.values())}}

    def answer(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server() -> Iterator[Server]:
    new = Server()
    thread = threading.Thread(target=lambda: new.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    yield new
    new.shutdown()
    thread.join()
    new.server_close()


def copied(server: Server, target: Path) -> dict[str, bytes]:
    datanodes = {DATANODE: server.address}
    download(LiveNameNode(server.address), datanodes, "/output/totals", target)
    paths = (path for path in target.rglob("*") if path.is_file())
    return {path.relative_to(target).as_posix(): path.read_bytes() for path in paths}


def test_every_file_is_copied_from_its_datanode(server: Server, tmp_path: Path) -> None:
    """Hidden and empty ones too, and names with signs that mean something in a URL."""
    assert copied(server, tmp_path) == server.files


def test_a_file_still_being_written_may_be_longer_than_listed(
    server: Server, tmp_path: Path
) -> None:
    server.lengths["hour=12/.part-1.inprogress"] = 0
    assert copied(server, tmp_path) == server.files


def test_a_file_that_is_shorter_than_listed_is_an_error(server: Server, tmp_path: Path) -> None:
    server.lengths["hour=12/part-0"] = 10
    with pytest.raises(NotDownloaded, match="/output/totals/hour=12/part-0: 9 of 10 bytes"):
        copied(server, tmp_path)


def test_an_error_of_a_datanode_is_an_error(server: Server, tmp_path: Path) -> None:
    server.datanode_status = 500
    with pytest.raises(NotDownloaded, match="500 Server Error"):
        copied(server, tmp_path)


def test_a_file_that_the_namenode_cannot_serve_is_an_error(server: Server, tmp_path: Path) -> None:
    server.location = ""
    with pytest.raises(OpenRejected, match=r"cannot be read: RetriableException: in safe mode$"):
        copied(server, tmp_path)


def test_another_datanode_is_not_asked(server: Server, tmp_path: Path) -> None:
    server.location = "elsewhere"
    with pytest.raises(NotDownloaded, match="elsewhere is no DataNode of this cluster"):
        copied(server, tmp_path)


def test_a_missing_or_empty_folder_is_an_error(server: Server, tmp_path: Path) -> None:
    server.files = {}
    with pytest.raises(NotDownloaded, match="/output/totals has no files, or is missing"):
        copied(server, tmp_path)
