"""Sweep on the fake: dead owners' things go, those of the living and the kept stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec
from streamquake.cluster.runtime.sweep import leftovers, sweep


@pytest.fixture(scope="module")
def dead() -> str:
    """The owner label of a process that has ended."""
    script = "from streamquake.cluster.runtime.labels import *; print(owner_of_this_process())"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def _run(runtime: FakeRuntime, run_id: str, owner: str, reaper: bool = False) -> None:
    marks = {labels.RUN: run_id, labels.OWNER: owner}
    runtime.create_network(run_id, marks)
    runtime.start(ContainerSpec(name=f"{run_id}-a", image="none", labels=marks))
    if reaper:
        own = {labels.REAPER: run_id, labels.OWNER: owner}
        runtime.start(ContainerSpec(name=f"{run_id}-reaper", image="none", labels=own))


@pytest.fixture
def runtime(dead: str) -> FakeRuntime:
    """Three runs, one dead with its reaper, one alive, one kept; and something of another's."""
    runtime = FakeRuntime(FakeClock())
    _run(runtime, "dead", dead, reaper=True)
    _run(runtime, "alive", labels.owner_of_this_process())
    _run(runtime, "kept", "")
    runtime.start(ContainerSpec(name="foreign", image="none"))
    return runtime


def _names(runtime: FakeRuntime) -> set[str]:
    return {found.name for found in (*runtime.find({}), *runtime.find_networks({}))}


def test_only_dead_owners_leave_leftovers(runtime: FakeRuntime) -> None:
    (leftover,) = leftovers(runtime)

    assert (leftover.run_id, leftover.kept) == ("dead", False)
    assert [found.name for found in leftover.containers] == ["dead-a", "dead-reaper"]
    assert [found.name for found in leftover.networks] == ["dead"]


def test_sweep_removes_the_dead_and_nothing_else(runtime: FakeRuntime) -> None:
    swept = sweep(runtime)

    assert ([left.run_id for left in swept.removed], swept.failures) == (["dead"], ())
    assert _names(runtime) == {"alive", "alive-a", "kept", "kept-a", "foreign"}
    assert sweep(runtime).removed == ()


def test_everything_is_everything_of_ours(runtime: FakeRuntime) -> None:
    swept = sweep(runtime, everything=True)

    assert [(left.run_id, left.kept) for left in swept.removed] == [
        ("alive", False),
        ("dead", False),
        ("kept", True),
    ]
    assert _names(runtime) == {"foreign"}


def test_the_reaper_goes_first_and_a_failure_stops_nothing(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = []
    remove = runtime.remove

    def refuses(container: str) -> None:
        name = runtime.containers[container].spec.name
        removed.append(name)
        if name == "dead-reaper":
            raise ContainerError("removal failed")
        remove(container)

    monkeypatch.setattr(runtime, "remove", refuses)

    assert sweep(runtime).failures == ("dead-reaper: removal failed",)
    assert removed == ["dead-reaper", "dead-a"]
    assert _names(runtime).isdisjoint({"dead", "dead-a"})
