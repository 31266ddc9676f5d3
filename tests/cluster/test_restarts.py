"""The restart policy of a container that ends at the wrong moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import docker
import pytest
from docker.errors import APIError

from streamquake.cluster.clock import FakeClock
from streamquake.cluster.docker import restarts
from streamquake.cluster.runtime import ContainerError


@dataclass
class Engine:
    """An engine that refuses a change so many times, for this reason, before it takes it."""

    refusals: int
    reason: str = f"Cannot update container kafka-1: {restarts.JUST_ENDED}: unknown"
    taken: list[Any] = field(default_factory=list)

    def update_container(self, container: str, restart_policy: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            raise APIError(self.reason)
        self.taken.append(restart_policy)

    def set_to(self, times: int) -> None:
        restarts.on_failure(cast(docker.APIClient, self), "kafka-1", times, FakeClock())


@pytest.mark.parametrize(("times", "name"), [(50, "on-failure"), (0, "no")])
def test_what_has_just_ended_is_asked_again(times: int, name: str) -> None:
    engine = Engine(refusals=3)
    engine.set_to(times)
    assert engine.taken == [{"Name": name, "MaximumRetryCount": times}]


def test_an_end_that_is_never_noticed_is_an_error_with_the_reason() -> None:
    with pytest.raises(ContainerError, match=r"kafka-1: restart policy set: .*stopped container"):
        Engine(refusals=1_000_000).set_to(0)


def test_another_refusal_is_told_at_once() -> None:
    engine = Engine(refusals=2, reason="no such container")
    with pytest.raises(APIError, match="no such container"):
        engine.set_to(0)
    assert engine.refusals == 1
