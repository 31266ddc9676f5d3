"""Fixtures for tests of several folders: a real container engine with the toolbox image, and
separate run ids.

A container test is never skipped. Without an engine it fails with the next step.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from streamquake.cluster.cluster import remove_cluster
from streamquake.cluster.engines.engine import engines
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.images import DockerImages
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.experiment.recorded_plugins import REGISTRIES
from streamquake.harness.reconcile.reading.source import sources
from streamquake.topologies.plugins import Plugins, plugins
from tests.echo import Echo

pytest_plugins = ["tests.tiers"]

# On a busy machine any example may take a second, so there is no deadline.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(scope="session")
def docker_runtime() -> DockerRuntime:
    """The engine of this machine, with the toolbox image in it."""
    runtime = DockerRuntime(SystemClock())
    runtime.check()
    ensure([recipe("toolbox")], DockerImages(), print)
    return runtime


@pytest.fixture
def run_id() -> str:
    """A run id that no other test has."""
    return f"test-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def docker_run(docker_runtime: DockerRuntime, run_id: str) -> Iterator[DockerRuntime]:
    """The engine. After the test everything with the test's run id is removed."""
    yield docker_runtime
    assert remove_cluster(docker_runtime, run_id) == []


@pytest.fixture
def without_plugins(monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """No plugin is loaded. Plugins, and the members that they register, are of this test only."""
    for registry in (*REGISTRIES, sources):
        assert list(registry)
        monkeypatch.setattr(registry, "_members", dict(registry._members))
        monkeypatch.setattr(registry, "_former", dict(registry._former))
    for name, value in vars(Plugins()).items():
        monkeypatch.setattr(plugins, name, value)
    return plugins


@pytest.fixture
def echo_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of `tests/echo.py`, for this test only."""
    assert Echo.name not in engines
    monkeypatch.setitem(engines._members, Echo.name, Echo)
