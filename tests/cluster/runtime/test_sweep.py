"""Sweep on the fake runtime: it removes the resources of dead owners only."""

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
    run_labels = {labels.RUN: run_id, labels.OWNER: owner}
    runtime.create_network(run_id, run_labels)
    runtime.start(ContainerSpec(name=f"{run_id}-a", image="none", labels=run_labels))
    if reaper:
        own = {labels.REAPER: run_id, labels.OWNER: owner}
        runtime.start(ContainerSpec(name=f"{run_id}-reaper", image="none", labels=own))


@pytest.fixture
def runtime(dead: str) -> FakeRuntime:
    """Three runs, one dead with its reaper, one alive, one kept; and a foreign container."""
    runtime = FakeRuntime(FakeClock())
    _run(runtime, "dead", dead, reaper=True)
    _run(runtime, "alive", labels.owner_of_this_process())
    _run(runtime, "kept", "")
    runtime.start(ContainerSpec(name="foreign", image="none"))
    return runtime


def _names(runtime: FakeRuntime) -> set[str]:
    return {found.name for found in (*runtime.find({}), *runtime.find_networks({}))}


def test_only_runs_of_dead_owners_are_leftovers(runtime: FakeRuntime) -> None:
    (leftover,) = leftovers(runtime)

    assert (leftover.run_id, leftover.kept) == ("dead", False)
    assert [found.name for found in leftover.containers] == ["dead-a", "dead-reaper"]
    assert [found.name for found in leftover.networks] == ["dead"]


def test_sweep_removes_only_dead_runs(runtime: FakeRuntime) -> None:
    result = sweep(runtime)

    assert ([leftover.run_id for leftover in result.removed], result.failures) == (["dead"], ())
    assert _names(runtime) == {"alive", "alive-a", "kept", "kept-a", "foreign"}
    assert sweep(runtime).removed == ()


def test_everything_removes_kept_and_live_runs_but_no_foreign_container(
    runtime: FakeRuntime,
) -> None:
    result = sweep(runtime, everything=True)

    assert [(leftover.run_id, leftover.kept) for leftover in result.removed] == [
        ("alive", False),
        ("dead", False),
        ("kept", True),
    ]
    assert _names(runtime) == {"foreign"}


def test_the_reaper_is_removed_first_and_a_failure_does_not_stop_the_rest(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = []
    remove = runtime.remove

    def fail_for_the_reaper(container: str) -> None:
        name = runtime.containers[container].spec.name
        removed.append(name)
        if name == "dead-reaper":
            raise ContainerError("removal failed")
        remove(container)

    monkeypatch.setattr(runtime, "remove", fail_for_the_reaper)

    assert sweep(runtime).failures == ("dead-reaper: removal failed",)
    assert removed == ["dead-reaper", "dead-a"]
    assert _names(runtime).isdisjoint({"dead", "dead-a"})
