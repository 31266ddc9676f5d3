"""Copies a folder of HDFS over HTTP, which takes a fraction of the time in which a shell starts.

Each file is read from the DataNode that the NameNode names:
https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html#Open_and_Read_a_File
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import requests

from streamquake.cluster.engines.hdfs.namenode import NameNode
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.topologies.errors import ErrorKind, StreamquakeError

AT_A_TIME = 4
ANSWER_S = 10.0
CHUNK = 1 << 20


class NotDownloaded(StreamquakeError):
    """A folder is empty or missing, or one of its files could not be read completely."""

    kind = ErrorKind.CLUSTER_FAILED


def download(namenode: NameNode, datanodes: Mapping[str, str], folder: str, target: Path) -> None:
    """Copy the files anywhere below a folder to below `target`, hidden ones included.

    `datanodes` are the published addresses of their HTTP servers, by their host names. Raises
    NotDownloaded, OpenRejected and NameNodeUnreachable; then some files may have been copied.
    """
    files = namenode.tree(folder)
    if not files:
        raise NotDownloaded(f"{folder} has no files, or is missing")

    def copy(name: str) -> None:
        _copy(_published(namenode.source_of(f"{folder}/{name}"), datanodes), target / name)
        if (copied := (target / name).stat().st_size) < files[name]:
            raise NotDownloaded(f"{folder}/{name}: {copied} of {files[name]} bytes")

    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="download") as pool:
        list(pool.map(copy, files))


def _published(url: str, datanodes: Mapping[str, str]) -> str:
    """The URL with the published address of its DataNode."""
    parts = urlsplit(url)
    address = datanodes.get(parts.hostname or "")
    if address is None:
        raise NotDownloaded(f"{parts.hostname} is no DataNode of this cluster")
    return parts._replace(netloc=address).geturl()


def _copy(url: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            loopback_session() as session,
            session.get(url, timeout=ANSWER_S, stream=True) as response,
            target.open("wb") as file,
        ):
            response.raise_for_status()
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
    except requests.RequestException as error:
        raise NotDownloaded(f"{target.name}: {error}") from error
