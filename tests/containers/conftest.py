"""What several tests of containers use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.labels import OWNER, owner_of_this_process
from streamquake.topologies.model import Topology
from tests.pace import at_pace


@pytest.fixture
def deploy(docker_runtime: DockerRuntime, run_id: str) -> Iterator[Callable[[Topology], Cluster]]:
    """Start a topology on Docker. It is removed at the end."""
    runtime = docker_runtime

    def deploy(topology: Topology) -> Cluster:
        cluster = Cluster(run_id=run_id, topology=topology, runtime=runtime, clock=SystemClock())
        start_cluster(
            cluster, tags={OWNER: owner_of_this_process()}, limit_s=at_pace(60), show_message=print
        )
        return cluster

    yield deploy
    assert remove_cluster(runtime, run_id) == []
