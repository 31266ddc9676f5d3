"""Access to a container's process through this host's kernel, if the container runs on this host.

The engine needs 12-16 ms to send a signal and answers some 100 ms after the effect. A pidfd shows
the end of a process within a millisecond, and its pid is not reused while the pidfd is open. With
Docker Desktop, with a remote engine and without root the processes are not accessible, and the
functions return None.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerError, ExecResult, InjectionTimes
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

ENDED_WITHIN_S = 10.0
TOOLS_LIMIT_S = 30.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Network tools are in sbin folders that an ordinary PATH may lack."""


def kill(container: str, pid: int, signal_name: str, clock: Clock) -> InjectionTimes | None:
    """Send a signal to a container's main process; None if it is not accessible.

    Returns after the effect: a killed process has ended, a stopped process is stopped, a continued
    process is not.
    """
    with _process_of(container, pid) as pidfd:
        if pidfd is None:
            return None
        called_ns = clock.epoch_ns()
        try:
            signal.pidfd_send_signal(pidfd, _number(signal_name))
        except (PermissionError, ProcessLookupError):
            return None
        if signal_name == "KILL" and not _ended(pidfd, ENDED_WITHIN_S):
            raise ContainerError(
                f"{container}: process {pid} has not ended {ENDED_WITHIN_S:g} s after SIGKILL"
            )
        if signal_name in ("STOP", "CONT"):
            _await_stopped(container, pid, signal_name == "STOP", clock)
        return InjectionTimes(called_ns=called_ns, seen_ns=clock.epoch_ns(), how="pidfd")


def in_network_namespace(container: str, pid: int, argv: Sequence[str]) -> ExecResult | None:
    """Run one of the host's network tools in the container's network namespace; None if it is not
    accessible.

    The engine adds its rules with the host's iptables too, so the two kinds of rules (legacy and
    nf_tables) are not mixed in one namespace.
    """
    tools = ("nsenter", "iptables", "perl", argv[0])
    if os.geteuid() != 0 or not all(shutil.which(tool, path=PATH) for tool in tools):
        return None
    with _process_of(container, pid) as pidfd:
        if pidfd is None:
            return None
        try:
            done = subprocess.run(
                ["nsenter", "-t", str(pid), "-n", *argv],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PATH": PATH},
                timeout=TOOLS_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ContainerError(
                f"{container}: {' '.join(argv)} did not end within {TOOLS_LIMIT_S:g} s"
            ) from error
    return ExecResult(exit_code=done.returncode, output=done.stdout.decode(errors="replace"))


@contextmanager
def _process_of(container: str, pid: int) -> Iterator[int | None]:
    """A pidfd of the container's main process, or None if the process is not accessible.

    The pid may be one of another machine; so the process's control group must contain the
    container's id. A pidfd always refers to the same process.
    """
    if sys.platform != "linux" or pid <= 0:
        yield None
        return
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield pidfd if _in_control_group(pid, container) and not _ended(pidfd, 0) else None
    finally:
        os.close(pidfd)


def _in_control_group(pid: int, container: str) -> bool:
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8") as groups:
            return container in groups.read()
    except OSError:
        return False


def _await_stopped(container: str, pid: int, stopped: bool, clock: Clock) -> None:
    """Wait until the process is in state T (stopped by a signal; proc(5)), or in another state."""

    def pending() -> str | None:
        state = _state_of(pid)
        return None if (state == "T") == stopped else f"process {pid} is in state {state}"

    try:
        wait_until(
            pending,
            what=f"{container} {'stopped' if stopped else 'continued'}",
            limit_s=ENDED_WITHIN_S,
            clock=clock,
            every_s=0.0002,
        )
    except NotReadyInTime as error:
        raise ContainerError(str(error)) from error


def _state_of(pid: int) -> str:
    """The letter of the process's state; empty when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _ended(pidfd: int, within_s: float) -> bool:
    """Whether a process has ended: its pidfd is readable from then on."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def _number(signal_name: str) -> signal.Signals:
    return signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
