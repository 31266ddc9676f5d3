"""How often the engine itself starts a container again when its main process fails."""

from __future__ import annotations

from typing import Any

import docker
from docker.errors import APIError

from streamquake.cluster.clock import Clock
from streamquake.cluster.runtime import ContainerError
from streamquake.cluster.waiting import NotReady, wait_until

JUST_ENDED = "cannot update a stopped container"
NOTICED_WITHIN_S = 10.0


def on_failure(client: docker.APIClient, container: str, times: int, clock: Clock) -> None:
    """Set the restart policy; 0 times is never.

    The engine hands every change to the runtime below, which refuses it (`JUST_ENDED`) between the
    end of the process and the engine's notice of it, as a container that crashes again and again
    often is; it is asked again then. Raises ContainerError when the engine never notices.
    """
    policy: Any = {"Name": "on-failure" if times else "no", "MaximumRetryCount": times}

    def refused() -> str | None:
        try:
            client.update_container(container, restart_policy=policy)
        except APIError as error:
            if JUST_ENDED not in str(error):
                raise
            return str(error)
        return None

    try:
        wait_until(refused, what="restart policy set", limit_s=NOTICED_WITHIN_S, clock=clock)
    except NotReady as never:
        raise ContainerError(f"{container}: {never}") from never
