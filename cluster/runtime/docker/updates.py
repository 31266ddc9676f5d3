"""Changes of a container's settings, also while its main process ends and is restarted."""

from __future__ import annotations

import re
from typing import Any

import docker
from docker.errors import APIError

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

JUST_ENDED = re.compile(
    "cannot update a stopped container|cannot update a deleted process|container not running"
    r"|task \w+ not found"
)
"""How containerd and runc word it. All four were seen in minutes of changes to a container that
ended every 20 ms."""
NOTICED_WITHIN_S = 10.0


def update(client: docker.APIClient, container: str, clock: Clock, **settings: Any) -> None:
    """Change settings that the engine stores and applies to a running container.

    Between the end of the process and the engine's notice of it, the runtimes below the engine
    reject them (`JUST_ENDED`). That is frequent for a container that crashes repeatedly, so the
    change is repeated then. Raises ContainerError when the engine does not notice the end in time.
    """

    def pending_update() -> str | None:
        try:
            client.update_container(container, **settings)
        except APIError as error:
            if not JUST_ENDED.search(str(error)):
                raise
            return str(error)
        return None

    what = f"{', '.join(settings)} set"
    try:
        wait_until(pending_update, what=what, limit_s=NOTICED_WITHIN_S, clock=clock)
    except NotReadyInTime as never:
        raise ContainerError(f"{container}: {never}") from never
