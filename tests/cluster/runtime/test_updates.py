"""Changes of a container that ends at the wrong moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import docker
import pytest
from docker.errors import APIError

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.docker import updates
from streamquake.cluster.runtime.runtime import ContainerError


@dataclass
class Engine:
    """An engine that refuses a change so many times, for this reason, before it takes it."""

    rejections: int
    reason: str = f"Cannot update container kafka-1: {updates.JUST_ENDED}: unknown"
    taken: list[Any] = field(default_factory=list)

    def update_container(self, container: str, **settings: Any) -> None:
        if self.rejections:
            self.rejections -= 1
            raise APIError(self.reason)
        self.taken.append((container, settings))

    def take(self, **settings: Any) -> None:
        updates.update(cast(docker.APIClient, self), "kafka-1", FakeClock(), **settings)


def test_what_has_just_ended_is_asked_again() -> None:
    engine = Engine(rejections=3)
    engine.take(cpu_quota=50_000, cpu_period=100_000)
    assert engine.taken == [("kafka-1", {"cpu_quota": 50_000, "cpu_period": 100_000})]


def test_an_end_that_is_never_noticed_is_an_error_with_the_reason() -> None:
    with pytest.raises(ContainerError, match=r"kafka-1: restart_policy set: .*stopped container"):
        Engine(rejections=1_000_000).take(restart_policy={"Name": "no"})


def test_another_rejection_is_raised_at_once() -> None:
    engine = Engine(rejections=2, reason="no such container")
    with pytest.raises(APIError, match="no such container"):
        engine.take(mem_limit=10**9)
    assert engine.rejections == 1
