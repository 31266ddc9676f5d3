"""Commands in containers whose answers may be lost, as on a busy machine."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.runtime.runtime import ContainerRuntime, ExecResult, ResponseLost


def run_again_on_failure(
    runtime: ContainerRuntime, container: str, argv: Sequence[str], timeout_s: float
) -> ExecResult:
    """What comes of a command, whatever its exit code; it must bear being run twice, for so it is
    when the engine loses the answer."""
    try:
        return runtime.exec(container, argv, timeout_s=timeout_s)
    except ResponseLost:
        return runtime.exec(container, argv, timeout_s=timeout_s)
