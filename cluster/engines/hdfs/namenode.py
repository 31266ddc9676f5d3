"""The reports of a NameNode, and the operations that it allows a client, over its published HTTP
port."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import requests

from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.topologies.errors import ErrorKind, StreamquakeError

HTTP = 9870
POLL_S = 2.0


class NameNodeUnreachable(StreamquakeError):
    """The NameNode did not answer in time, or is not serving; the message states which."""

    kind = ErrorKind.CLUSTER_FAILED


class DeletionRejected(StreamquakeError):
    """The NameNode rejected a deletion; the message has the path and its reason."""

    kind = ErrorKind.CLUSTER_FAILED


class OpenRejected(StreamquakeError):
    """The NameNode named no DataNode for a file; the message has the path and its reason."""

    kind = ErrorKind.CLUSTER_FAILED


class NameNode(Protocol):
    """The queries to a NameNode. Every call may raise NameNodeUnreachable."""

    def state(self) -> Mapping[str, Any] | None:
        """Its report on the file system; None before it has one."""
        ...

    def heartbeat_age_s(self) -> Mapping[str, int]:
        """Host name of each live DataNode -> whole seconds since its last heartbeat."""
        ...

    def rejection(self, folder: str) -> str | None:
        """The NameNode's reason why a folder cannot be created; None when it was created and
        removed again."""
        ...

    def holders(self, path: str) -> tuple[str, ...]:
        """The host names of the DataNodes with the first block of a file; empty for a missing
        file."""
        ...

    def files(self, folder: str) -> Mapping[str, int]:
        """The files directly below a folder -> their bytes; empty for a missing folder."""
        ...

    def tree(self, folder: str) -> Mapping[str, int]:
        """The files anywhere below a folder, by their relative paths -> their bytes; empty for a
        missing folder. It sends one request per folder."""
        ...

    def source_of(self, path: str) -> str:
        """The URL at which a DataNode serves a file, with the DataNode's host name in the network.
        May raise OpenRejected."""
        ...

    def paths(self) -> frozenset[str]:
        """All files and folders, by their absolute paths. It sends one request per folder."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file or a folder with its contents, not into the trash. Raises
        DeletionRejected."""
        ...


def namenode_of(cluster: LiveCluster, service: str) -> Node:
    return cluster.of_role(f"{service}/namenode")[0]


def namenode(cluster: LiveCluster, service: str) -> NameNode:
    """The NameNode of a service, for queries."""
    if service not in cluster.clients:
        address = cluster.address(namenode_of(cluster, service), HTTP)
        cluster.clients[service] = LiveNameNode(address)
    known: NameNode = cluster.clients[service]
    return known


class LiveNameNode:
    """A running NameNode, by JMX over HTTP and by WebHDFS."""

    def __init__(self, address: str) -> None:
        self._address = address

    def state(self) -> Mapping[str, Any] | None:
        return self._bean("FSNamesystemState")

    def heartbeat_age_s(self) -> Mapping[str, int]:
        live = json.loads((self._bean("NameNodeInfo") or {}).get("LiveNodes", "{}"))
        return {name.partition(":")[0]: int(report["lastContact"]) for name, report in live.items()}

    def rejection(self, folder: str) -> str | None:
        answer = self._answer("PUT", f"/webhdfs/v1{folder}", {"op": "MKDIRS"})
        if "RemoteException" in answer:
            return _reason(answer)
        self._answer("DELETE", f"/webhdfs/v1{folder}", {"op": "DELETE"})
        return None

    def holders(self, path: str) -> tuple[str, ...]:
        answer = self._answer("GET", f"/webhdfs/v1{path}", {"op": "GETFILEBLOCKLOCATIONS"})
        blocks = answer.get("BlockLocations", {}).get("BlockLocation", [])
        return tuple(blocks[0]["hosts"]) if blocks else ()

    def files(self, folder: str) -> Mapping[str, int]:
        listed = self._listed(folder)
        return {f["pathSuffix"]: int(f["length"]) for f in listed if f["type"] == "FILE"}

    def tree(self, folder: str) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for entry in self._listed(folder):
            name = entry["pathSuffix"]
            if entry["type"] == "FILE":
                found[name] = int(entry["length"])
            else:
                below = self.tree(f"{folder}/{name}")
                found |= {f"{name}/{path}": size for path, size in below.items()}
        return found

    def source_of(self, path: str) -> str:
        answer = self._answer("GET", f"/webhdfs/v1{path}", {"op": "OPEN", "noredirect": "true"})
        if "Location" not in answer:
            reason = _reason(answer) if "RemoteException" in answer else "no DataNode was named"
            raise OpenRejected(f"{path} cannot be read: {reason}")
        return str(answer["Location"])

    def paths(self) -> frozenset[str]:
        return frozenset(self._paths_below(""))

    def delete(self, path: str) -> None:
        answer = self._answer("DELETE", f"/webhdfs/v1{path}", {"op": "DELETE", "recursive": "true"})
        if "RemoteException" in answer:
            raise DeletionRejected(f"{path} could not be deleted: {_reason(answer)}")

    def _paths_below(self, folder: str) -> Iterator[str]:
        for entry in self._listed(folder or "/"):
            path = f"{folder}/{entry['pathSuffix']}"
            yield path
            if entry["type"] != "FILE":
                yield from self._paths_below(path)

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        answer = self._answer("GET", f"/webhdfs/v1{folder}", {"op": "LISTSTATUS"})
        listed: list[dict[str, Any]] = answer.get("FileStatuses", {}).get("FileStatus", [])
        return listed

    def _bean(self, name: str) -> dict[str, Any] | None:
        query = {"qry": f"Hadoop:service=NameNode,name={name}"}
        beans: list[dict[str, Any]] = self._answer("GET", "/jmx", query).get("beans", [])
        return beans[0] if beans else None

    def _answer(self, verb: str, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """The JSON answer; a rejection is in JSON too."""
        try:
            with loopback_session() as session:
                response = session.request(
                    verb, f"http://{self._address}{quote(path)}", params=query, timeout=POLL_S
                )
                answer: dict[str, Any] = response.json()
        except requests.RequestException as error:
            raise NameNodeUnreachable(f"{verb} {path}: {type(error).__name__}") from error
        return answer


def _reason(answer: Mapping[str, Any]) -> str:
    """The reason of a rejection."""
    rejected = answer["RemoteException"]
    return f"{rejected['exception']}: {rejected['message'].splitlines()[0]}"
