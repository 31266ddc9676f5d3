"""The priority of the virtual machine: the lowest for a rehearsal, and that of the run again."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.harness.run.low_priority import LOWEST, lower_priority, restore_priority

OWN = os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize(("user", "lowered"), [(0, LOWEST), (1000, OWN)])
def test_the_priority_is_lowered_where_it_can_be_raised_again(
    user: int, lowered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0 and user == 0:
        lowered = OWN  # only root can raise it
    else:
        monkeypatch.setattr(os, "geteuid", lambda: user)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        context = SimpleNamespace(_gateway=SimpleNamespace(proc=process))
        session: Any = SimpleNamespace(sparkContext=context)
        lower_priority(session)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == lowered
        restore_priority(session)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == OWN
        process.communicate(b"\n")
