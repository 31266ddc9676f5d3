"""Changes of a container whose process has just ended."""

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
    """An engine that rejects a change this often, with this reason, before it accepts it."""

    rejections: int
    reason: str
    accepted: list[Any] = field(default_factory=list)

    def update_container(self, container: str, **settings: Any) -> None:
        if self.rejections:
            self.rejections -= 1
            raise APIError(self.reason)
        self.accepted.append((container, settings))

    def update(self, **settings: Any) -> None:
        updates.update(cast(docker.APIClient, self), "kafka-1", FakeClock(), **settings)


STOPPED = "Cannot update container kafka-1: cannot update a stopped container: unknown"
DELETED = "Cannot update container kafka-1: cannot update a deleted process: unknown"
UNKNOWN = "Cannot update container kafka-1: task a4a422e9 not found: not found"
ENDED_MEANWHILE = (
    "Cannot update container kafka-1: runc did not terminate successfully: exit status 1: "
    "container not running\n: unknown"
)


@pytest.mark.parametrize("reason", [STOPPED, DELETED, UNKNOWN, ENDED_MEANWHILE])
def test_a_change_is_repeated_after_the_process_has_just_ended(reason: str) -> None:
    engine = Engine(rejections=3, reason=reason)
    engine.update(cpu_quota=50_000, cpu_period=100_000)
    assert engine.accepted == [("kafka-1", {"cpu_quota": 50_000, "cpu_period": 100_000})]


def test_a_change_that_is_always_rejected_is_an_error_with_the_reason() -> None:
    with pytest.raises(ContainerError, match=r"kafka-1: restart_policy set: .*stopped container"):
        Engine(rejections=1_000_000, reason=STOPPED).update(restart_policy={"Name": "no"})


def test_another_rejection_is_raised_at_once() -> None:
    engine = Engine(rejections=2, reason="no such container")
    with pytest.raises(APIError, match="no such container"):
        engine.update(mem_limit=10**9)
    assert engine.rejections == 1
