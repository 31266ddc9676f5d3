"""Fake Spark workers: each has an executor, which is restarted some time after a kill, and shuffle
files."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.faults.catalogue.lose_shuffle import LOSE, MARK

RESTART_DELAY_NS = 300_000_000


def install(cluster: Cluster) -> None:
    """Let every worker of a fake cluster run an executor."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    executors: dict[str, tuple[int, int]] = {}
    """Container -> the process id of its executor, and since when it runs, nanoseconds."""

    def run(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if argv[0] not in ("pgrep", "kill"):
            return None
        process, since_ns = executors.setdefault(spec.name, (70, 0))
        if argv[0] == "kill":
            executors[spec.name] = (process + 1, cluster.clock.now_ns() + RESTART_DELAY_NS)
            return ExecResult(exit_code=0, output="")
        runs = cluster.clock.now_ns() >= since_ns
        return ExecResult(exit_code=0 if runs else 1, output=f"{process}\n" if runs else "")

    def shuffle(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        files = runtime.by_name(spec.name).files
        if list(argv) == ["sh", "-c", LOSE]:
            files[MARK] = "3\n"
        elif list(argv) == ["rm", "-f", MARK]:
            files.pop(MARK, None)
        elif list(argv) != ["cat", MARK]:
            return None
        exists = MARK in files
        return ExecResult(exit_code=0 if exists else 1, output=files.get(MARK, ""))

    runtime.on_exec.append(run)
    runtime.on_exec.append(shuffle)
