"""Commands in containers, repeated when the engine loses their output, as on a busy machine."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.runtime.runtime import ContainerRuntime, ExecResult, ResponseLost


def run_again_on_failure(
    runtime: ContainerRuntime, container: str, argv: Sequence[str], timeout_s: float = 60
) -> ExecResult:
    """The result of a command, whatever its exit code. The command must be safe to run twice: it is
    repeated when the engine loses the output."""
    try:
        return runtime.exec(container, argv, timeout_s=timeout_s)
    except ResponseLost:
        return runtime.exec(container, argv, timeout_s=timeout_s)
