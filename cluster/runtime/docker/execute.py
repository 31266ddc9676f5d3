"""Commands in a container, and in its network namespace from another container."""

from __future__ import annotations

import math
import queue
import threading
import time
import uuid
from collections.abc import Sequence

import docker

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerRuntime,
    ContainerSpec,
    ExecResult,
    ResponseLost,
)

GRACE_S = 10.0
"""How much longer than the command's own limit the engine may take to report its end."""
KILLED_BY_SIGNAL = 128
KILLED = KILLED_BY_SIGNAL + 9
REPORTS_ITS_END = '"$@"; code=$?; printf %s "$0"; printf %s "$0" >&2; exit $code'
"""Run the arguments, then print $0 on both streams: output that contains it twice is complete."""

SAME_IPTABLES = """
if iptables-legacy -t nat -S DOCKER_OUTPUT >/dev/null 2>&1; then
  mkdir -p /tmp/legacy
  for tool in iptables iptables-restore iptables-save; do
    ln -sf "$(command -v "iptables-legacy${tool#iptables}")" "/tmp/legacy/$tool"
  done
  PATH=/tmp/legacy:$PATH
fi
exec "$@"
"""
"""Use the kind of iptables (legacy or nf_tables) with which the engine created its own rules."""


def run(
    client: docker.APIClient, container: str, argv: Sequence[str], timeout_s: float
) -> ExecResult:
    """Run a command to its end. A command that exceeds its limit is killed and raises
    ContainerError.

    The engine cannot end a command that it started, so `timeout` (coreutils or busybox, in every
    usual image) does it in the container; the deadline here is only for an engine or container that
    hangs. Two seconds after a command's end the engine closes its streams, read or not (`EventExit`
    in moby's `daemon/monitor.go`). So on a busy machine the output may be incomplete or empty:
    ResponseLost.
    """
    limit_s = max(1, math.ceil(timeout_s))
    mark = uuid.uuid4().hex
    wrapped = ["sh", "-c", REPORTS_ITS_END, mark, "timeout", "-s", "KILL", str(limit_s), *argv]
    began = time.monotonic()
    command = client.exec_create(container, wrapped)["Id"]
    output = _output(client, command, limit_s + GRACE_S)
    if output is None:
        raise ContainerError(
            f"{container}: `{' '.join(argv)}` hangs and could not be ended within "
            f"{limit_s + GRACE_S:g} s; is the container frozen?"
        )
    exit_code = client.exec_inspect(command)["ExitCode"]
    marked = output.decode(errors="replace")
    text = marked.replace(mark, "")
    if exit_code == KILLED and time.monotonic() - began >= limit_s:
        raise ContainerError(
            f"{container}: `{' '.join(argv)}` did not end within {limit_s} s and was killed; "
            f"its output: {text[-500:]}"
        )
    if exit_code < KILLED_BY_SIGNAL and marked.count(mark) < 2:
        raise ResponseLost(
            f"{container}: `{' '.join(argv)}` ended with status {exit_code}, but the engine closed "
            f"its output before all of it was read (is the machine overloaded?): {text[-500:]!r}"
        )
    return ExecResult(exit_code=exit_code, output=text)


def _output(client: docker.APIClient, command: str, limit_s: float) -> bytes | None:
    """A command's output; None when it did not arrive in time. It is read in a thread, since the
    SDK has no deadline for reading."""
    answers: queue.Queue[bytes | BaseException] = queue.Queue()

    def read() -> None:
        try:
            answers.put(client.exec_start(command))
        except Exception as error:  # noqa: BLE001 - handed over and raised by the caller
            answers.put(error)

    threading.Thread(target=read, daemon=True, name="exec").start()
    try:
        answer = answers.get(timeout=limit_s)
    except queue.Empty:
        return None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def run_beside(
    runtime: ContainerRuntime, client: docker.APIClient, container: str, argv: Sequence[str]
) -> ExecResult:
    """Run a network tool of the toolbox image in a helper container that shares the container's
    network namespace."""
    helper = runtime.start(
        ContainerSpec(
            name=f"streamquake-net-{uuid.uuid4().hex[:12]}",
            image=recipe("toolbox").tag,
            command=("sleep", "60"),
            labels=_labels_of(client, container),
            beside=container,
            changes_network=True,
        )
    )
    try:
        return runtime.exec(helper, ["sh", "-c", SAME_IPTABLES, "sh", *argv], timeout_s=30)
    finally:
        runtime.remove(helper)


def _labels_of(client: docker.APIClient, container: str) -> dict[str, str]:
    """The labels of the run, so that the helper is removed with it, without those of the node."""
    present: dict[str, str] = client.inspect_container(container)["Config"]["Labels"] or {}
    return {key: present[key] for key in (labels.RUN, labels.OWNER) if key in present}
