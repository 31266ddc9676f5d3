"""Commands in containers whose answers may be lost, as on a busy machine."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.cluster.runtime.runtime import AnswerLost, ContainerRuntime, ExecResult


def asked_again(
    runtime: ContainerRuntime, container: str, argv: Sequence[str], timeout_s: float
) -> ExecResult:
    """What comes of a command, whatever its exit code; it must bear being run twice, for so it is
    when the engine loses the answer."""
    try:
        return runtime.exec(container, argv, timeout_s=timeout_s)
    except AnswerLost:
        return runtime.exec(container, argv, timeout_s=timeout_s)
