"""Fake brokers and a fake NameNode: leaders and followers, open transactions, files on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable
from streamquake.cluster.engines.kafka import contents as kafka_contents
from streamquake.cluster.engines.kafka import log as kafka_log
from streamquake.cluster.engines.kafka.admin import KafkaUnreachable
from streamquake.cluster.engines.kafka.brokers import ABORTED, OPEN, PartitionState, Transaction
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.fake_runtime import FakeContainer, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ContainerStatus, ExecResult

DONE = ExecResult(exit_code=0, output="")
LOG = kafka_log.FOLDER
PARTITIONS = 3
SEGMENT = "00000000000000000000.log"


def install(cluster: Cluster) -> None:
    for service, declared in cluster.topology.services.items():
        if declared.engine == "kafka":
            cluster.clients[service] = FakeBrokers(cluster, service)
        if declared.engine == "hdfs":
            cluster.clients[service] = FakeNameNode(cluster, service)


class FakeBrokers:
    """Three partitions of one topic, a replica on every broker, and an open transaction on each.

    A broker is in sync while it runs and its packets to the replication port are not stopped.
    """

    def __init__(self, cluster: Cluster, service: str) -> None:
        self._runtime = _fake_runtime(cluster)
        self._nodes = cluster.of_role(f"{service}/broker")
        self.transaction_states = [
            Transaction(
                id=f"test-totals-{node.spec.ordinal}-1",
                coordinator=node.spec.ordinal,
                state=OPEN,
                epoch=0,
                timeout_ms=900_000,
            )
            for node in self._nodes
        ]
        self.group_names = ["g", "run-1"]
        self.changed: list[str] = []
        """The settings that were changed while the brokers ran."""
        self.deleted_folders: dict[str, list[str]] = {}
        """Broker -> the folders of deleted partitions that it has not removed yet."""
        self.silent: tuple[str, ...] = ()
        """The errors of brokers that run but do not answer."""
        self._runtime.on_exec.append(self._in_broker)
        for node in self._nodes:
            for path, text in _broker_files().items():
                self._runtime.write(node.container, path, text)

    def answering(self) -> tuple[int, ...]:
        return tuple(node.spec.ordinal for node in self._running())

    def partitions(self) -> tuple[PartitionState, ...]:
        running = [node.spec.ordinal for node in self._running()]
        in_sync = tuple(n.spec.ordinal for n in self._running() if not self._cut_off(n))
        return tuple(
            PartitionState(
                topic="input",
                number=number,
                epoch=0,
                in_sync=in_sync,
                leader=running[number % len(running)],
                replicas=tuple(node.spec.ordinal for node in self._nodes),
            )
            for number in range(PARTITIONS)
        )

    def controller(self) -> int:
        return self._running()[0].spec.ordinal

    def transactions(self) -> tuple[Transaction, ...]:
        self._running()
        return tuple(self.transaction_states)

    def every_transaction(self) -> tuple[tuple[Transaction, ...], tuple[str, ...]]:
        return self.transactions(), self.silent

    def groups(self) -> tuple[str, ...]:
        return tuple(self.group_names)

    def delete_groups(self, names: Sequence[str]) -> None:
        self.group_names = [name for name in self.group_names if name not in names]

    def changed_settings(self, topics: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.changed)

    def expire(self, transaction: Transaction) -> None:
        aborted = replace(transaction, state=ABORTED, epoch=transaction.epoch + 1)
        place = self.transaction_states.index(transaction)
        self.transaction_states[place] = aborted

    def _running(self) -> list[Node]:
        found = [
            n
            for n in self._nodes
            if self._runtime.inspect(n.container).status == ContainerStatus.RUNNING
        ]
        if not found:
            raise KafkaUnreachable("no broker runs")
        return found

    def _cut_off(self, node: Node) -> bool:
        """Whether a chain in the broker's namespace stops packets to the replication port."""
        applied: set[str] = set()
        for argv in self._runtime.containers[node.sandbox].rules:
            document = argv[-1]
            if document.startswith("*filter"):
                if "--dport 9092" in document and "-j REJECT" in document:
                    applied.add(document.splitlines()[1].split()[0].removeprefix(":"))
            else:
                applied.discard(document)
        return bool(applied)

    def _in_broker(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if not any(spec.name.endswith(node.spec.host) for node in self._nodes):
            return None
        files = self._runtime.by_name(spec.name).files
        match argv:
            case ["test", "-e", path]:
                return ExecResult(exit_code=0 if path in files else 1, output="")
            case ["rm", "-f", path]:
                files.pop(path, None)
                return DONE
            case ["sh", "-c", script, _] if script == kafka_contents.LIST_DELETED[-1]:
                broker = next(n for n in self._nodes if spec.name.endswith(n.spec.host))
                listed = "\n".join(self.deleted_folders.get(broker.name, ()))
                return ExecResult(exit_code=0, output=listed)
            case ["sh", "-c", _, "sh", folder, kafka_log.CHECKPOINT]:
                return ExecResult(exit_code=0, output=_listing(files, folder))
            case ["sh", "-c", _, "sh", folder, mark, head, *steps]:
                files[mark] = f"{head}\n"
                for keeps, path in zip(steps[::2], steps[1::2], strict=True):
                    content = files.pop(f"{folder}/{path}")
                    if keeps != "delete":
                        files[f"{folder}/{path}"] = content[: int(keeps)]
                    files[mark] += f"{path} {len(files.get(f'{folder}/{path}', ''))}\n"
                return DONE
        return None


class FakeNameNode:
    """A NameNode whose safe mode the administration tool sets; the mode ends with the process."""

    def __init__(self, cluster: Cluster, service: str) -> None:
        self._runtime = _fake_runtime(cluster)
        self._node = cluster.of_role(f"{service}/namenode")[0]
        self._datanodes = len(cluster.of_role(f"{service}/datanode"))
        self._safe_since = ""
        """The start of the process that entered safe mode."""
        self._runtime.on_exec.append(self._administer)

    def state(self) -> Mapping[str, Any]:
        safe = self._safe_since == self._process_start()
        return {
            "FSState": "safeMode" if safe else "Operational",
            "NumLiveDataNodes": self._datanodes,
        }

    def heartbeat_age_s(self) -> Mapping[str, int]:
        self._process_start()
        return {f"hdfs-datanode-{number + 1}": 0 for number in range(self._datanodes)}

    def rejection(self, folder: str) -> str | None:
        safe = self.state()["FSState"] == "safeMode"
        return f"SafeModeException: Cannot create directory {folder}." if safe else None

    def tree(self, folder: str) -> Mapping[str, int]:
        """No files: only the shell of the container has some."""
        self._process_start()
        return {}

    def holders(self, path: str) -> tuple[str, ...]:
        self._process_start()
        return ("hdfs-datanode-2",) if path == "/kept" else ()

    def _process_start(self) -> str:
        state = self._container().state
        if state.status != ContainerStatus.RUNNING:
            raise NameNodeUnreachable("GET /jmx: ConnectionError")
        return state.started_at

    def _container(self) -> FakeContainer:
        return self._runtime.containers[self._node.container]

    def _administer(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if argv[-3:-1] != ["dfsadmin", "-safemode"] or spec != self._container().spec:
            return None
        self._safe_since = self._process_start() if argv[-1] == "enter" else ""
        return ExecResult(exit_code=0, output="Safe mode is switched")


def _fake_runtime(cluster: Cluster) -> FakeRuntime:
    assert isinstance(cluster.runtime, FakeRuntime)
    return cluster.runtime


def _broker_files() -> dict[str, str]:
    """A broker's files: nothing of the first partition is flushed, and the second is new."""
    return {
        f"{LOG}/{kafka_log.CHECKPOINT}": "0\n1\ninput 0 0\n",
        f"{LOG}/{kafka_log.METADATA}/{SEGMENT}": "m" * 500,
        f"{LOG}/input-0/{SEGMENT}": "r" * 4_000,
        f"{LOG}/input-1/{SEGMENT}": "r" * 3_000,
        f"{LOG}/input-2/{SEGMENT}": "",
    }


def _listing(files: Mapping[str, str], folder: str) -> str:
    def lines() -> Iterator[str]:
        yield files[f"{folder}/{kafka_log.CHECKPOINT}"]
        yield "---\n"
        for path, text in files.items():
            if path.startswith(folder) and path.endswith(".log"):
                yield f".{path.removeprefix(folder)} {len(text)}\n"

    return "".join(lines())
