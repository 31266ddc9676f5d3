"""The short way to a container's process: through this host's kernel, where it is the same one.

The engine needs 12-16 ms to reach the kernel for a kill and answers some 100 ms after the effect;
a pidfd shows the end of a process within a millisecond, and a pid cannot be reused while one is
held. With Docker Desktop, a remote engine, or without root all this is out of reach, and the
functions say so by answering None.
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

GONE_WITHIN_S = 10.0
TOOLS_LIMIT_S = 30.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Network tools stand in sbin folders that an ordinary PATH may lack."""


def kill(container: str, pid: int, signal_name: str, clock: Clock) -> InjectionTimes | None:
    """Signal a container's main process; None where out of reach.

    Returns when a process that was killed is gone, and when one that was stopped, or let go on,
    is so.
    """
    with _process_of(container, pid) as pidfd:
        if pidfd is None:
            return None
        called_ns = clock.epoch_ns()
        try:
            signal.pidfd_send_signal(pidfd, _number(signal_name))
        except (PermissionError, ProcessLookupError):
            return None
        if signal_name == "KILL" and not _ended(pidfd, GONE_WITHIN_S):
            raise ContainerError(
                f"{container}: process {pid} was still there {GONE_WITHIN_S:g} s after SIGKILL"
            )
        if signal_name in ("STOP", "CONT"):
            _await_stopped(container, pid, signal_name == "STOP", clock)
        return InjectionTimes(called_ns=called_ns, seen_ns=clock.epoch_ns(), how="pidfd")


def in_network_namespace(container: str, pid: int, argv: Sequence[str]) -> ExecResult | None:
    """Run one of the host's network tools in the container's namespace; None where out of reach.

    The host's own iptables is the one the engine lays its rules with, so the two kinds of rules
    (legacy and nf_tables) are not mixed within one namespace.
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
    """A pidfd of the container's main process, or None when it cannot be had on this host.

    The pid may mean a process of another machine; only one whose control group carries the
    container's id is the container's. Held as a pidfd it stays the same process.
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
    """Wait until the process is in state T (stopped by a signal; proc(5)), or no longer."""

    def pending() -> str | None:
        state = _state_of(pid)
        return None if (state == "T") == stopped else f"process {pid} is in state {state}"

    try:
        wait_until(
            pending,
            what=f"{container} {'stopped' if stopped else 'going on'}",
            limit_s=GONE_WITHIN_S,
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
    """A pidfd is readable from the moment its process has ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def _number(signal_name: str) -> signal.Signals:
    return signal.Signals[f"SIG{signal_name.removeprefix('SIG')}"]
