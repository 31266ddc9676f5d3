"""Changes of a container's settings, also while its main process comes and goes."""

from __future__ import annotations

from typing import Any

import docker
from docker.errors import APIError

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

JUST_ENDED = "cannot update a stopped container"
NOTICED_WITHIN_S = 10.0


def update(client: docker.APIClient, container: str, clock: Clock, **settings: Any) -> None:
    """Change settings that the engine keeps and, of a running container, hands on.

    The runtime below the engine refuses them (`JUST_ENDED`) between the end of the process and the
    engine's notice of it, as a container that crashes again and again often is; it is asked again
    then. Raises ContainerError when the engine never notices.
    """

    def pending_update() -> str | None:
        try:
            client.update_container(container, **settings)
        except APIError as error:
            if JUST_ENDED not in str(error):
                raise
            return str(error)
        return None

    what = f"{', '.join(settings)} set"
    try:
        wait_until(pending_update, what=what, limit_s=NOTICED_WITHIN_S, clock=clock)
    except NotReadyInTime as never:
        raise ContainerError(f"{container}: {never}") from never
