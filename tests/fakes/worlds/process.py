"""Fake processes that can be stopped, scripts that make them fail, memory that can be filled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.fake_runtime import KILLED, FakeContainer, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.faults.mechanisms.entrypoint import SCRIPT

PROGRAM = "#!/bin/bash\nset -eu\nexec java streamquake.Node\n"
NEEDED_HEAP_MB = 64
OUT_OF_HEAP = 3
"""The exit code of a JVM with ExitOnOutOfMemoryError."""


def install(cluster: Cluster) -> None:
    """Give the containers of a fake cluster a start script and a main process."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    for container in runtime.containers.values():
        container.files.setdefault(SCRIPT, PROGRAM)

    def run(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        container = runtime.by_name(spec.name)
        if list(argv) == ["cat", "/proc/1/stat"]:
            state = "T" if container.stopped else "S"
            return ExecResult(exit_code=0, output=f"1 (java) {state} 0 1 1 0 -1")
        if argv[0] == "sh" and "exec tail /dev/zero" in argv[-1]:
            adjusted = "echo 1000 >/proc/1/oom_score_adj" in argv[-1]
            if adjusted:
                runtime.die(container.id, KILLED, oom_killed=True)
            return ExecResult(exit_code=KILLED, output="")
        return None

    def pending(services: Iterable[str] | None = None) -> str | None:
        """As the cluster's own method, but an engine is ready as soon as its nodes run."""
        for service in services or cluster.topology.services:
            if (reason := cluster._ended(cluster.of_service(service))) is not None:
                return reason
        return None

    runtime.on_exec.append(run)
    runtime.on_start.append(_run_script)
    cluster.pending = pending  # type: ignore[method-assign]


def _run_script(container: FakeContainer) -> int | None:
    """Run the script of a container: its exit code, or None when its program runs."""
    for line in container.files.get(SCRIPT, "").splitlines():
        words = line.replace(";", " ").split()
        if "exit" in words:
            return int(words[words.index("exit") + 1])
        heaps = [word for word in words if word.startswith("-Xmx")]
        if heaps and int(heaps[0].removeprefix("-Xmx").removesuffix("m")) < NEEDED_HEAP_MB:
            container.log.append("java.lang.OutOfMemoryError: Java heap space")
            return OUT_OF_HEAP
    return None
