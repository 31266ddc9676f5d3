"""Whether the owner of a resource runs: this process, an ended one, one of another host."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from streamquake.cluster.runtime.labels import OWNER, owner_is_alive, owner_of_this_process


def test_this_process_is_alive() -> None:
    assert owner_is_alive({OWNER: owner_of_this_process()})


def test_an_ended_process_is_dead_even_before_its_parent_has_waited_for_it() -> None:
    module = "streamquake.cluster.runtime.labels"
    script = f"from {module} import *; print(owner_of_this_process(), flush=True)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        owner = {OWNER: process.stdout.read().decode().strip()}
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert not owner_is_alive(owner)
    assert not owner_is_alive(owner)


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc has the start time of a process")
def test_a_reused_pid_is_not_the_owner() -> None:
    host, pid, start = owner_of_this_process().rsplit(":", 2)

    assert not owner_is_alive({OWNER: f"{host}:{pid}:{int(start) - 1}"})


@pytest.mark.parametrize("owner", ["", "another-host:1:1"])
def test_an_owner_on_another_host_counts_as_alive(owner: str) -> None:
    assert owner_is_alive({OWNER: owner})


def test_a_resource_without_an_owner_label_counts_as_owned() -> None:
    assert owner_is_alive({})
