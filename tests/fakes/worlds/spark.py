"""Executors of Spark's workers: one each, started again a while after it was killed."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.fake_runtime import FakeRuntime
from streamquake.cluster.runtime import ContainerSpec, ExecResult

STARTED_AGAIN_NS = 300_000_000


def install(cluster: Cluster) -> None:
    """Let every worker of a fake cluster run an executor."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    executors: dict[str, tuple[int, int]] = {}
    """Container -> the process of its executor, and from when on it is there."""

    def run(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if argv[0] not in ("pgrep", "kill"):
            return None
        process, since_ns = executors.setdefault(spec.name, (70, 0))
        if argv[0] == "kill":
            executors[spec.name] = (process + 1, cluster.clock.now_ns() + STARTED_AGAIN_NS)
            return ExecResult(exit_code=0, output="")
        there = cluster.clock.now_ns() >= since_ns
        return ExecResult(exit_code=0 if there else 1, output=f"{process}\n" if there else "")

    runtime.on_exec.append(run)
