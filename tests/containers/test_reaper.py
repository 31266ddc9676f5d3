"""The reaper removes a run within ten seconds after its harness was killed with SIGKILL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.cluster.cluster import remove_cluster
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.reaper import Reaper
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec, ContainerStatus
from streamquake.cluster.runtime.sweep import leftovers, sweep
from tests.pace import wait_until

pytestmark = pytest.mark.container

OWNER = Path(__file__).parent / "owner.py"


@pytest.fixture
def owner(docker_runtime: DockerRuntime, run_id: str) -> Iterator[subprocess.Popen[str]]:
    """A separate process that owns a running cluster with a reaper."""
    process = subprocess.Popen(
        [sys.executable, str(OWNER), run_id],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    for reaper in docker_runtime.find({labels.REAPER: run_id}):
        docker_runtime.remove(reaper.id)
    assert remove_cluster(docker_runtime, run_id) == []


def _left(runtime: DockerRuntime, run_id: str) -> str | None:
    left = (
        *runtime.find({labels.RUN: run_id}),
        *runtime.find_networks({labels.RUN: run_id}),
        *runtime.find({labels.REAPER: run_id}),
    )
    return f"still there: {', '.join(thing.name for thing in left)}" if left else None


def test_a_killed_harness_leaves_no_containers_after_ten_seconds(
    docker_runtime: DockerRuntime, owner: subprocess.Popen[str], run_id: str
) -> None:
    assert len(docker_runtime.find({labels.RUN: run_id})) == 3
    assert len(docker_runtime.find({labels.REAPER: run_id})) == 1

    owner.kill()

    wait_until(
        lambda: _left(docker_runtime, run_id),
        what="everything reaped",
        limit_s=10,
        clock=SystemClock(),
    )


def test_sweep_keeps_running_runs_and_removes_ended_ones_without_a_reaper(
    docker_runtime: DockerRuntime, owner: subprocess.Popen[str], run_id: str
) -> None:
    assert run_id not in [leftover.run_id for leftover in leftovers(docker_runtime)]
    (reaper,) = docker_runtime.find({labels.REAPER: run_id})
    docker_runtime.pause(reaper.id)  # as if it died with its owner
    owner.kill()
    owner.wait()

    swept = sweep(docker_runtime)

    assert swept.failures == ()
    # A run that begins in another test sweeps too, so it may have been faster.
    assert not any(removed.kept for removed in swept.removed if removed.run_id == run_id)
    wait_until(
        lambda: _left(docker_runtime, run_id), what="all swept", limit_s=10, clock=SystemClock()
    )


def test_a_kept_cluster_is_not_removed_by_the_reaper(
    docker_run: DockerRuntime, run_id: str
) -> None:
    reaper = Reaper(docker_run, run_id)
    reaper.start()
    container = docker_run.start(
        ContainerSpec(
            name=run_id,
            image=recipe("toolbox").tag,
            command=("sleep", "600"),
            labels={labels.RUN: run_id},
        )
    )
    reaper.stop()
    reaper.stop()

    assert docker_run.find({labels.REAPER: run_id}) == ()
    assert run_id not in [leftover.run_id for leftover in leftovers(docker_run)]
    assert docker_run.inspect(container).status == ContainerStatus.RUNNING


def test_a_reaper_that_does_not_answer_is_removed_and_reported(
    docker_run: DockerRuntime, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamquake.cluster.runtime.docker.reaper.ANSWERS_WITHIN_S", 1.0)
    monkeypatch.setattr("streamquake.cluster.runtime.docker.reaper.ENV", {"RYUK_PORT": "9"})

    with pytest.raises(ContainerError, match="the reaper: not within 1 s"):
        Reaper(docker_run, run_id).start()

    assert docker_run.find({labels.REAPER: run_id}) == ()
